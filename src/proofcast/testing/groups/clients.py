"""Devices in memory: honest ones with a disk and crashes, and such as lie to their peers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

from nacl.signing import SigningKey

from proofcast.groups import outputs
from proofcast.groups.client import Client, Recovery, Settings
from proofcast.groups.io.sessions import OlmSessions
from proofcast.groups.outbox import Draft, Outbox
from proofcast.groups.outputs import Output
from proofcast.groups.sealing import (
    CommonPlaintext,
    Payload,
    Sort,
    compute_recipients_digest,
    seal_common,
)
from proofcast.groups.series import SALT_BYTES, Envelope, Message
from proofcast.testing.groups.server import LyingServer


class ClientLie(Enum):
    WRONG_HEAD = "claim another history"
    INDEX_AHEAD = "claim messages that do not exist"
    BAD_CIPHERTEXT = "send the victim garbage"
    TWO_KEYS = "give the victim another key"
    WRONG_RECIPIENTS = "name other recipients inside than outside"
    SILENT = "claim another history and never answer"
    FALSE_ANSWER = "claim another history and answer nonsense"


@dataclass(slots=True)
class LyingOutbox(Outbox):
    """Seals messages that are wrong for its victim."""

    lie: ClientLie | None = None
    victims: list[bytes] = field(default_factory=list)
    random: Random = field(default_factory=Random)
    sort: Sort = Sort.OPERATION
    """Of the message being sealed: only operations are false, so that what is asked about them is answered truly."""
    server: LyingServer | None = None
    """A confederate: it delivers to the victim what is made for the victim alone."""

    @property
    def victim(self) -> bytes:
        return self.victims[0]

    def add(self, drafts: tuple[Draft, ...]) -> None:
        if self.lie in (ClientLie.SILENT, ClientLie.FALSE_ANSWER):
            drafts = tuple(self.falsify_answer(draft) for draft in drafts)
        super(LyingOutbox, self).add(drafts)

    def falsify_answer(self, draft: Draft) -> Draft:
        if draft.sort is not Sort.ANSWER:
            return draft
        if self.lie is ClientLie.SILENT:
            return replace(draft, sort=Sort.ACK, body=b"")
        return replace(draft, body=draft.body[:32] + bytes(25) + self.random.randbytes(400))

    def make_payload(self, recipient: bytes, key: bytes) -> Payload:
        payload = super(LyingOutbox, self).make_payload(recipient, key)
        if recipient != self.victim or self.sort is not Sort.OPERATION:
            return payload
        if self.lie in (ClientLie.WRONG_HEAD, ClientLie.SILENT, ClientLie.FALSE_ANSWER):
            return replace(payload, head=self.random.randbytes(32))
        if self.lie is ClientLie.INDEX_AHEAD:
            return replace(payload, index=payload.index + self.random.randint(1, 9))
        if self.lie is ClientLie.TWO_KEYS:
            return replace(payload, key=self.random.randbytes(32))
        return payload

    def seal(self, draft: Draft, index: int, count: int, told: dict[bytes, tuple[int, int]]) -> Message:
        self.sort = draft.sort
        made = super(LyingOutbox, self).seal(draft, index, count, told)
        if draft.sort is not Sort.OPERATION:
            return made
        if self.server is not None and self.victim in made.recipients:
            self.server.variants[made.common] = self.seal_variant(draft, index, count, made)
        if self.lie is ClientLie.BAD_CIPHERTEXT:
            return replace(made, envelopes=tuple(map(self.spoil, made.envelopes)))
        if self.lie is ClientLie.WRONG_RECIPIENTS and self.victim in made.recipients:
            return self.seal_wrong_recipients(draft, index, count, made)
        return made

    def spoil(self, envelope: Envelope) -> Envelope:
        garbage = self.random.randbytes(len(envelope.ciphertext))
        return replace(envelope, ciphertext=garbage) if envelope.recipient == self.victim else envelope

    def seal_variant(self, draft: Draft, index: int, count: int, made: Message) -> Message:
        """The same message with another operation, readable by the victim."""
        key = self.draw(32)
        common = self.seal_common(replace(draft, body=b"for the victim alone"), index, count, key, draft.recipients)
        payload = super(LyingOutbox, self).make_payload(self.victim, key)
        own = Envelope(self.victim, *self.sessions.encrypt(self.victim, payload.encode()))
        envelopes = tuple(own if one.recipient == self.victim else one for one in made.envelopes)
        return replace(made, common=common, envelopes=envelopes)

    def seal_wrong_recipients(self, draft: Draft, index: int, count: int, made: Message) -> Message:
        key = self.draw(32)
        common = self.seal_common(draft, index, count, key, draft.recipients[:-1])
        payloads = ((one, super(LyingOutbox, self).make_payload(one, key)) for one in draft.recipients)
        sealed = [Envelope(one, *self.sessions.encrypt(one, payload.encode())) for one, payload in payloads]
        return replace(made, common=common, envelopes=tuple(sealed))

    def seal_common(self, draft: Draft, index: int, count: int, key: bytes, recipients: Sequence[bytes]) -> bytes:
        digest = compute_recipients_digest(tuple(recipients))
        plain = CommonPlaintext(draft.sort, self.device, self.counter, index, count, digest, draft.body)
        return seal_common(plain, key, self.draw(SALT_BYTES))


class Crash(Exception):
    """The device is gone; its disk is not."""


@dataclass(slots=True)
class Device:
    """A device with its disk, on a network that loses nothing but what a crash loses."""

    name: str
    identity: SigningKey
    server: LyingServer
    random: Random
    settings: Settings = field(default_factory=Settings)
    crash_rate: float = 0.0
    """Chance of a crash at every output."""
    make_outbox: Callable[[Client], Outbox] | None = None
    disk: dict[str, bytes] = field(default_factory=dict)
    delivered: list[outputs.Deliver] = field(default_factory=list)
    """What the application got, which is stored with the device's state."""
    accusations: list[outputs.Accuse] = field(default_factory=list)
    """So are these: the notebook of a real device has them in the same write."""
    trace: list[str] = field(default_factory=list)
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    @property
    def id(self) -> bytes:
        return bytes(self.identity.verify_key)

    def start(self) -> None:
        """From what is on the disk, as after a crash."""
        sessions = OlmSessions(self.identity, self.disk)
        self.client = Client(self.id, self.server.server_key, sessions, self.random.randbytes, self.settings)
        if self.make_outbox is not None:
            self.client.use_outbox(self.make_outbox(self.client))
        self.client.load(self.disk)

    def connect(self, now: float) -> None:
        """Tell the server about ourselves, and hear what it knows of us."""
        if "client" not in self.disk:
            self.perform(self.client.register(now), now)
        left = outputs.KeysLeft(len(self.server.keys.get(self.id, ())))
        self.perform(self.client.receive(left, now), now)
        counter = outputs.ServerCounter(self.server.counters.get(self.id, 0), self.server.deleted.get(self.id, 0))
        self.perform(self.client.receive(counter, now), now)

    def read(self, now: float) -> None:
        """Take what is in the inbox, in order."""
        for packet in list(self.server.inboxes.get(self.id, ())):
            self.perform(self.client.receive(packet, now), now)

    def send(self, drafts: tuple[Draft, ...], now: float) -> None:
        self.perform(self.client.send(drafts, now), now)

    def recover(self, recovery: Recovery, now: float) -> None:
        self.perform(self.client.recover(recovery, now), now)

    def perform(self, wanted: Sequence[Output], now: float) -> None:
        """What is stored, delivered and accused becomes durable together; a crash comes before or after."""
        if self.random.random() < self.crash_rate:
            raise Crash
        for output in wanted:
            if isinstance(output, outputs.Store):
                self.store(output)
                self.delivered += [one for one in wanted if isinstance(one, outputs.Deliver)]
                self.accusations += [one for one in wanted if isinstance(one, outputs.Accuse)]
            elif self.random.random() < self.crash_rate:
                raise Crash
            self.perform_one(output, now)

    def restart(self, now: float) -> None:
        self.trace.append(f"{self.name} crashes")
        self.start()
        self.connect(now)

    def restore(self, backup: dict[str, bytes], now: float) -> None:
        self.trace.append(f"{self.name} is restored")
        self.disk = dict(backup)
        self.start()
        self.connect(now)

    def perform_one(self, output: Output, now: float) -> None:
        match output:
            case outputs.SendSeries():
                self.server.submit(output.data)
            case outputs.ClaimKeys():
                self.perform(self.client.receive(self.server.claim(output.devices), now), now)
            case outputs.PublishKeys():
                self.server.publish(output.bundles)
            case outputs.DeleteInbox():
                self.server.delete(self.id, output.sequence)
            case outputs.DemandLeaf():
                self.server.demands.add(self.id)
            case _:
                pass
        self.note(output)

    def store(self, output: outputs.Store) -> None:
        for name, value in output.changes.items():
            if value is None:
                self.disk.pop(name, None)
            else:
                self.disk[name] = value

    def note(self, output: Output) -> None:
        if not isinstance(output, outputs.Store):
            self.trace.append(f"{self.name} {describe(output)}")


def describe(output: Output) -> str:
    """What happened, without bytes that differ from run to run."""
    name = type(output).__name__
    match output:
        case outputs.Deliver():
            return f"{name} {output.sequence} {output.operation.decode()}"
        case outputs.SendSeries() | outputs.Acknowledged() | outputs.Restored():
            return f"{name} {output.counter}"
        case outputs.Suspect() | outputs.Lost() | outputs.DeleteInbox():
            return f"{name} {output.sequence}"
        case outputs.Accuse():
            return f"{name} {output.culprit.value} {output.sequence} {output.proof is not None}"
        case _:
            return name
