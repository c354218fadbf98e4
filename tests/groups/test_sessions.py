"""Pairwise sessions with the real double ratchet."""

import random

import pytest
from nacl.signing import SigningKey

from proofcast.errors import InvalidInput
from proofcast.groups.io.sessions import STEPS_MAX, VOUCHER_BYTES, OlmSessions
from proofcast.groups.series import Form

PAYLOAD = bytes(79)


def make_pair() -> tuple[OlmSessions, OlmSessions]:
    """The first has opened a session with the second, who does not know yet."""
    a, b = (OlmSessions(SigningKey(letter * 32), {}) for letter in (b"a", b"b"))
    a.open_with(b.make_bundles(1)[0])
    return a, b


def reload(sessions: OlmSessions) -> OlmSessions:
    records = {name: value for name, value in sessions.take_changes().items() if value is not None}
    return OlmSessions(sessions.identity, records)


def test_replay_is_refused() -> None:
    a, b = make_pair()
    form, ciphertext = a.encrypt(b.device, PAYLOAD)
    b.decrypt(a.device, form, ciphertext)
    with pytest.raises(InvalidInput, match="does not open"):
        b.decrypt(a.device, form, ciphertext)


@pytest.mark.parametrize("place", [0, 40, VOUCHER_BYTES, VOUCHER_BYTES + 5, 200, -1])
def test_changed_first_message_is_refused_and_breaks_nothing(place: int) -> None:
    """Every byte is authenticated, also once the session is known."""
    a, b = make_pair()
    for _ in range(2):
        form, ciphertext = a.encrypt(b.device, PAYLOAD)
        changed = bytearray(ciphertext)
        changed[place] ^= 1
        with pytest.raises(InvalidInput):
            b.decrypt(a.device, form, bytes(changed))
        assert b.decrypt(a.device, form, ciphertext).payload == PAYLOAD


def test_session_key_of_somebody_else_is_refused() -> None:
    """Man in the middle: the first message must be signed by the identity it claims."""
    a, b = make_pair()
    form, ciphertext = a.encrypt(b.device, PAYLOAD)
    with pytest.raises(InvalidInput, match="not signed by"):
        b.decrypt(bytes(SigningKey(b"c" * 32).verify_key), form, ciphertext)


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("ciphertext", [b"", bytes(127), bytes(400)])
def test_garbage_is_refused(form: Form, ciphertext: bytes) -> None:
    a, b = make_pair()
    with pytest.raises(InvalidInput):
        b.decrypt(a.device, form, ciphertext)


def test_long_form_ends_with_the_first_answer() -> None:
    a, b = make_pair()
    form, ciphertext = a.encrypt(b.device, PAYLOAD)
    assert (form, b.decrypt(a.device, form, ciphertext).is_new) == (Form.FIRST, True)
    answer = b.encrypt(a.device, PAYLOAD)
    assert (answer[0], a.decrypt(b.device, *answer).is_new) == (Form.NORMAL, False)
    assert a.encrypt(b.device, PAYLOAD)[0] is Form.NORMAL


def test_two_sessions_made_at_once_become_one() -> None:
    a, b = make_pair()
    b.open_with(a.make_bundles(1)[0])
    crossing = a.encrypt(b.device, PAYLOAD), b.encrypt(a.device, PAYLOAD)
    b.decrypt(a.device, *crossing[0])
    a.decrypt(b.device, *crossing[1])
    for _ in range(3):
        b.decrypt(a.device, *a.encrypt(b.device, PAYLOAD))
        a.decrypt(b.device, *b.encrypt(a.device, PAYLOAD))
    assert a.encrypt(b.device, PAYLOAD)[0] is Form.NORMAL


def test_stored_sessions_go_on() -> None:
    a, b = make_pair()
    b.decrypt(a.device, *a.encrypt(b.device, PAYLOAD))
    a, b = reload(a), reload(b)
    assert a.decrypt(b.device, *b.encrypt(a.device, PAYLOAD)).payload == PAYLOAD
    assert a.decrypt(a.device, *a.encrypt(a.device, PAYLOAD)).payload == PAYLOAD


class Stored:
    """Sessions that keep every change, and may be read again from what was kept."""

    def __init__(self, sessions: OlmSessions) -> None:
        self.sessions = sessions
        self.records: dict[str, bytes] = {}

    @property
    def device(self) -> bytes:
        return self.sessions.device

    def store(self) -> set[str]:
        """The kinds of what has changed."""
        changes = self.sessions.take_changes()
        kept = self.records | changes
        self.records = {name: value for name, value in kept.items() if value is not None}
        return {name.partition("/")[0] for name, value in changes.items() if value is not None}

    def restart(self) -> None:
        self.sessions = OlmSessions(self.sessions.identity, self.records)

    def tell(self, other: "Stored") -> None:
        """Send one message; both store, as before anything leaves."""
        sealed = self.sessions.encrypt(other.device, PAYLOAD)
        self.store()
        assert other.sessions.decrypt(self.device, *sealed).payload == PAYLOAD
        other.store()


def test_only_the_first_of_a_run_of_messages_stores_the_session() -> None:
    a, b = map(Stored, make_pair())
    a.tell(b)
    b.tell(a)
    kinds = []
    for _ in range(STEPS_MAX + 2):
        b.sessions.decrypt(a.device, *a.sessions.encrypt(b.device, PAYLOAD))
        kinds.append(a.store())
    assert kinds == [{"session"}, *[{"steps"}] * (STEPS_MAX - 1), {"session"}, {"steps"}]


@pytest.mark.parametrize("seed", range(8))
def test_no_key_is_used_twice_wherever_a_device_starts_again(seed: int) -> None:
    """A ratchet refuses a key that it has seen, so that whatever opens was not sealed with a used one."""
    dice = random.Random(seed)
    a, b = map(Stored, make_pair())
    b.sessions.open_with(a.sessions.make_bundles(1)[0])
    for _ in range(400):
        one, other = (a, b) if dice.random() < 0.7 else (b, a)
        one.tell(other)
        if dice.random() < 0.3:
            dice.choice((a, b)).restart()


def test_session_that_gave_way_to_another_keeps_its_steps() -> None:
    a, b = map(Stored, make_pair())
    late = Stored(OlmSessions(SigningKey(b"b" * 32), {}))  # the same device, with a session of its own
    a.tell(b)
    a.tell(b)
    a.tell(b)
    late.sessions.open_with(a.sessions.make_bundles(1)[0])
    late.tell(a)
    a.restart()
    a.sessions.sessions[b.device].reverse()
    a.tell(b)


def test_fallback_key_serves_several() -> None:
    _, b = make_pair()
    bundle = b.make_fallback()
    bundle.verify(b.device)
    assert bundle.is_fallback
    for letter in (b"c", b"d"):
        stranger = OlmSessions(SigningKey(letter * 32), {})
        stranger.open_with(bundle)
        assert b.decrypt(stranger.device, *stranger.encrypt(b.device, PAYLOAD)).is_new
