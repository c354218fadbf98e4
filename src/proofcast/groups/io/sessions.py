"""The double ratchet, by vodozemac: one Olm account per device, one or more sessions per peer.

vodozemac draws its own randomness and keeps its objects opaque; only pickles go in and out. Two devices that write to
each other at once make two sessions; the one that last decrypted is used. After a decryption that fails a session stays
usable, so that a forged ciphertext breaks nothing.

A session draws a new key when it encrypts for the first time after it decrypted; after that, encrypting takes one step
along a chain, whatever the text. So its pickle is stored then, and later only how many steps it has taken since: they
are taken again when the device starts. A pickle costs as much time as the encryption, and fifty times the bytes.
"""

import os
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from nacl.signing import SigningKey
from vodozemac import (
    Account,
    AnyOlmMessage,
    Curve25519PublicKey,
    OlmDecryptionException,
    Session,
    SessionCreationException,
)

from proofcast.errors import InvalidInput, Reason
from proofcast.groups.identity import KeyBundle, verify_signed
from proofcast.groups.series import Form
from proofcast.groups.session import Opened
from proofcast.groups.wire import refuse

SESSIONS_MAX = 4
"""Kept per peer: both sides' first ones, and their repairs."""
NONCE_BYTES = 12
VOUCHER = b"pcg1/crv"
VOUCHER_BYTES = 96
"""Before a pre-key message: our Curve25519 key, and the identity's signature over it and the message, because a ratchet
does not authenticate all of a pre-key message once the session is known."""
ACCOUNT, SELF_KEY = "account", "self-key"
STEPS_MAX = 64
"""Of a session beyond its pickle: a millisecond for each peer when the device starts."""
STEP_BYTES = 2


class OlmSessions:
    """Sessions of the device whose identity key is `identity`; `records` is what `take_changes` returned before."""

    def __init__(self, identity: SigningKey, records: Mapping[str, bytes]) -> None:
        self.identity = identity
        self.device = bytes(identity.verify_key)
        self.pickle_key = bytes(32)
        """Pickles rest inside the device's encrypted store; a second key would rest beside them."""
        self.changes: dict[str, bytes | None] = {}
        self.sessions: dict[bytes, list[Session]] = {}
        """By peer; the one that last decrypted is first."""
        self.pickles: dict[int, str] = {}
        """Of sessions unchanged since, by `id`: pickling is dearer than decrypting."""
        self.touched: set[bytes] = set()
        self.drawn: set[bytes] = set()
        """Peers whose first session has encrypted since it last decrypted."""
        self.steps: dict[bytes, int] = {}
        """Encryptions since a session's pickle was stored, where nothing else has happened to it."""
        self.account = Account()
        self.self_key = records.get(SELF_KEY, b"") or os.urandom(32)
        self.self_cipher = AESGCM(self.self_key)
        if ACCOUNT in records:
            self.load(records)
        else:
            self.keep_account()

    def load(self, records: Mapping[str, bytes]) -> None:
        self.account = Account.from_pickle(records[ACCOUNT].decode(), self.pickle_key)
        for name, value in records.items():
            kind, _, peer = name.partition("/")
            if kind == "session":
                pickles = value.decode().split("\n")
                self.sessions[bytes.fromhex(peer)] = [Session.from_pickle(one, self.pickle_key) for one in pickles]
        for name, value in records.items():
            kind, _, peer = name.partition("/")
            if kind == "steps":
                self.take_steps(bytes.fromhex(peer), int.from_bytes(value, "big"))

    def take_steps(self, peer: bytes, count: int) -> None:
        for _ in range(count):
            self.sessions[peer][0].encrypt(b"")
        self.drawn.add(peer)
        self.steps[peer] = count

    def has(self, peer: bytes) -> bool:
        return peer == self.device or peer in self.sessions

    def open_with(self, bundle: KeyBundle) -> None:
        curve_key, key = (Curve25519PublicKey.from_bytes(one) for one in (bundle.curve_key, bundle.key))
        try:
            session = self.account.create_outbound_session(curve_key, key)
        except (SessionCreationException, ValueError):
            raise refuse(f"the keys of `{bundle.device.hex()}` open no session") from None
        self.use(bundle.device, session)

    def encrypt(self, peer: bytes, payload: bytes) -> tuple[Form, bytes]:
        if peer == self.device:
            nonce = os.urandom(NONCE_BYTES)
            return Form.SELF, nonce + self.self_cipher.encrypt(nonce, payload, None)
        session = self.sessions[peer][0]
        number, ciphertext = session.encrypt(payload).to_parts()
        self.touched.add(peer)
        self.drawn.add(peer)
        self.pickles.pop(id(session), None)
        if peer in self.steps:
            self.steps[peer] += 1
        if number == Form.NORMAL:
            return Form.NORMAL, ciphertext
        return Form.FIRST, self.make_voucher(ciphertext) + ciphertext

    def decrypt(self, peer: bytes, form: Form, ciphertext: bytes) -> Opened:
        if form is Form.SELF:
            return Opened(self.decrypt_own(peer, ciphertext), is_new=False)
        voucher, rest = (
            (ciphertext[:VOUCHER_BYTES], ciphertext[VOUCHER_BYTES:]) if form is Form.FIRST else (b"", ciphertext)
        )
        if form is Form.FIRST:
            signed = VOUCHER + peer + voucher[:32] + rest
            verify_signed(peer, signed, voucher[32:], "the first message of a session")
        try:
            message = AnyOlmMessage.from_parts(form, rest)
        except ValueError:
            raise self.cannot_open(peer) from None
        for session in list(self.sessions.get(peer, ())):
            try:
                payload = session.decrypt(message)
            except OlmDecryptionException:
                continue
            self.use(peer, session)
            return Opened(payload, is_new=False)
        if form is Form.FIRST:
            return Opened(self.accept(peer, voucher[:32], message), is_new=True)
        raise self.cannot_open(peer)

    def decrypt_own(self, peer: bytes, ciphertext: bytes) -> bytes:
        try:
            assert peer == self.device
            return self.self_cipher.decrypt(ciphertext[:NONCE_BYTES], ciphertext[NONCE_BYTES:], None)
        except (AssertionError, InvalidTag, ValueError):
            raise self.cannot_open(peer) from None

    def accept(self, peer: bytes, curve_key: bytes, message: AnyOlmMessage) -> bytes:
        """A session that a peer begins."""
        pre_key = message.to_pre_key()
        try:
            assert pre_key is not None
            session, payload = self.account.create_inbound_session(Curve25519PublicKey.from_bytes(curve_key), pre_key)
        except (AssertionError, SessionCreationException, OlmDecryptionException, ValueError):
            raise self.cannot_open(peer) from None
        self.keep_account()
        self.use(peer, session)
        return payload

    def forget_all(self) -> None:
        for peer in self.sessions:
            self.changes |= {f"session/{peer.hex()}": None, f"steps/{peer.hex()}": None}
        self.sessions, self.pickles, self.steps, self.account = {}, {}, {}, Account()
        self.touched, self.drawn = set(), set()
        self.keep_account()

    def make_bundles(self, count: int) -> list[KeyBundle]:
        self.account.generate_one_time_keys(count)
        bundles = [self.sign_bundle(key.to_bytes(), is_fallback=False) for key in self.account.one_time_keys.values()]
        self.account.mark_keys_as_published()
        self.keep_account()
        return bundles

    def make_fallback(self) -> KeyBundle:
        self.account.generate_fallback_key()  # type: ignore[attr-defined]  # the stubs of vodozemac 0.10 lack it
        (key,) = self.account.fallback_key.values()  # type: ignore[attr-defined]
        self.account.mark_keys_as_published()
        self.keep_account()
        return self.sign_bundle(key.to_bytes(), is_fallback=True)

    def take_changes(self) -> Mapping[str, bytes | None]:
        for peer in self.touched:
            if self.steps.get(peer, STEPS_MAX) < STEPS_MAX:
                self.changes[f"steps/{peer.hex()}"] = self.steps[peer].to_bytes(STEP_BYTES, "big")
            else:
                self.keep_sessions(peer)
        self.touched = set()
        taken, self.changes = self.changes, {}
        return taken

    def keep_sessions(self, peer: bytes) -> None:
        pickles = [self.get_pickle(session) for session in self.sessions[peer]]
        self.changes |= {f"session/{peer.hex()}": "\n".join(pickles).encode(), f"steps/{peer.hex()}": None}
        if peer in self.drawn:
            self.steps[peer] = 0

    def use(self, peer: bytes, session: Session) -> None:
        """Put a session first; it is new, or has decrypted."""
        kept = [session, *(one for one in self.sessions.get(peer, []) if one is not session)]
        for forgotten in kept[SESSIONS_MAX:]:
            self.pickles.pop(id(forgotten), None)
        self.sessions[peer] = kept[:SESSIONS_MAX]
        self.pickles.pop(id(session), None)
        self.touched.add(peer)
        self.drawn.discard(peer)
        self.steps.pop(peer, None)

    def get_pickle(self, session: Session) -> str:
        if id(session) not in self.pickles:
            self.pickles[id(session)] = session.pickle(self.pickle_key)
        return self.pickles[id(session)]

    def keep_account(self) -> None:
        self.changes |= {ACCOUNT: self.account.pickle(self.pickle_key).encode(), SELF_KEY: self.self_key}

    def make_voucher(self, ciphertext: bytes) -> bytes:
        curve_key = self.account.curve25519_key.to_bytes()
        return curve_key + self.identity.sign(VOUCHER + self.device + curve_key + ciphertext).signature

    def sign_bundle(self, key: bytes, *, is_fallback: bool) -> KeyBundle:
        unsigned = KeyBundle(self.device, self.account.curve25519_key.to_bytes(), is_fallback, key, b"")
        signature = self.identity.sign(unsigned.get_signed_bytes()).signature
        return KeyBundle(self.device, unsigned.curve_key, is_fallback, key, signature)

    def cannot_open(self, peer: bytes) -> InvalidInput:
        return InvalidInput(
            Reason.DISAGREES,
            f"a ciphertext from `{peer.hex()}` does not open",
            hint="the evidence is kept and the sender is asked for its receipt",
        )
