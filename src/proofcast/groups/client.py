"""The core of a device: sends series, receives in the total order, and believes nobody.

    send    drafts wait for the recipients' keys, are sealed once, stored, and sent until the server attests them
    receive a packet is checked against its attestation; then, message by message in order: open, compare histories,
            advance them, deliver
    doubt   what does not fit is not delivered, and nothing after it is; the sender is asked for what the server told it
    verdict its answer convicts the server, by a proof, or the sender; so does its silence after a time
    recover the application decides what becomes of the doubtful messages, and histories begin anew

Methods return what the driver is to do, in order. All state is in the records of `Store`, so that a device that starts
again with them goes on where it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from proofcast.errors import InvalidInput, Misbehaviour, Reason, Unavailable
from proofcast.groups import outputs
from proofcast.groups.attested import Attested, Statement, parse_statement
from proofcast.groups.doubts import Doubts
from proofcast.groups.effects import Effects
from proofcast.groups.histories import ENTRIES, PREFIX, Histories
from proofcast.groups.inquiry import Inquiry
from proofcast.groups.keyring import Keyring
from proofcast.groups.outbox import Draft, Outbox
from proofcast.groups.outputs import Accuse, Culprit, Output
from proofcast.groups.packet import InboxPacket, ReceiptPacket
from proofcast.groups.proof import Kind
from proofcast.groups.reading import Reading
from proofcast.groups.records import BACKUP_NAME, META_NAME, Meta, get_order, parse_held, parse_meta
from proofcast.groups.series import get_salt
from proofcast.groups.session import Sessions
from proofcast.groups.wire import refuse

Input = InboxPacket | ReceiptPacket | outputs.Bundles | outputs.KeysLeft | outputs.ServerCounter


class Recovery(Enum):
    """What the application wants after an accusation."""

    ROLL_BACK = "roll back"
    LOAD_SNAPSHOT = "load a snapshot"


@dataclass(frozen=True, slots=True)
class Settings:
    validate_every: int = 1
    """Messages to a peer per validation payload."""
    answer_s_max: float = 7 * 86_400.0
    """A peer that has been offline for a week and more is called silent, not before."""
    keys_low: int = 20
    """One-time keys at the server below which new ones are published."""
    keys_full: int = 50
    """vodozemac publishes at most this many."""
    fallback_s: float = 7 * 86_400.0
    """Age at which the fallback key is replaced: what it protects should not stay long under one key."""


@dataclass(slots=True)
class Client:
    device: bytes
    server_key: bytes
    sessions: Sessions
    draw: Callable[[int], bytes]
    """Randomness."""
    settings: Settings = field(default_factory=Settings)
    effects: Effects = field(default_factory=Effects)
    histories: Histories = field(init=False)
    attested: Attested = field(init=False)
    outbox: Outbox = field(init=False)
    keyring: Keyring = field(init=False)
    inquiry: Inquiry = field(init=False)
    reading: Reading = field(init=False)
    acknowledged: int = 0
    """Counter of the last series that the server attested."""
    is_backup: bool = False
    """Loaded from a backup, and not connected since."""

    def __post_init__(self) -> None:
        self.histories = Histories(self.device)
        self.attested = Attested(self.device, self.server_key)
        self.use_outbox(Outbox(self.device, self.sessions, self.histories, self.draw, self.settings.validate_every))

    def use_outbox(self, outbox: Outbox) -> None:
        doubts = Doubts(self.settings.answer_s_max)
        self.outbox = outbox
        self.keyring = Keyring(self.sessions, outbox, self.effects)
        self.inquiry = Inquiry(self.device, outbox, self.histories, self.attested, doubts, self.effects)
        self.reading = Reading(self.device, self.sessions, self.histories, outbox, self.inquiry, self.effects)

    @property
    def doubts(self) -> Doubts:
        return self.inquiry.doubts

    @property
    def is_suspended(self) -> bool:
        """Nothing is delivered or sent until the application says how to go on."""
        return self.inquiry.is_suspended

    # --- commands

    def register(self, now: float) -> list[Output]:
        """A new device: give the server keys, so that others can write to it."""
        self.keyring.publish(self.settings.keys_full, now, with_fallback=True)
        return self.finish()

    def send(self, drafts: tuple[Draft, ...], now: float) -> list[Output]:
        """One series; its operations come back in their place of the order."""
        return self.send_all((drafts,), now)

    def send_all(self, series: Sequence[tuple[Draft, ...]], now: float) -> list[Output]:
        """Several, which are stored at once."""
        if self.is_suspended:
            message = "nothing is sent while an accusation is open"
            raise Unavailable(Reason.NOT_YET, message, hint="decide with `recover` how to go on")
        for drafts in series:
            self.outbox.add(drafts)
        self.keyring.flush()
        return self.finish()

    def pause(self, peer: bytes) -> list[Output]:
        """A peer is away for long: keep nothing on its account until it is back and agrees with us again."""
        self.histories.pause(peer)
        self.trim()
        return self.finish()

    def recover(self, recovery: Recovery, now: float) -> list[Output]:
        """Go on after an accusation; halting is not to call this."""
        validated = self.histories.compute_validated()
        if recovery is Recovery.ROLL_BACK:
            self.effects.out.append(outputs.RolledBack(validated + 1))
        else:
            self.effects.out.append(outputs.SnapshotWanted(max(self.inquiry.held, default=validated)))
        self.inquiry.release()
        self.histories.begin_generation(self.outbox.counter + 1)
        self.keyring.flush()
        return self.finish()

    def tick(self, now: float) -> list[Output]:
        for peer, verdict in self.doubts.find_overdue(now):
            self.inquiry.conclude(peer, verdict)
        if now >= self.keyring.fallback_at + self.settings.fallback_s:
            self.keyring.publish(0, now, with_fallback=True)
        self.keyring.ask_again()
        self.keyring.flush()
        return self.finish()

    def deadline(self) -> float | None:
        return min([self.keyring.fallback_at + self.settings.fallback_s, *self.doubts.get_deadlines()])

    # --- what comes in

    def receive(self, message: Input, now: float) -> list[Output]:
        match message:
            case InboxPacket():
                self.receive_inbox(message, now)
            case ReceiptPacket():
                self.receive_receipts(message)
            case outputs.Bundles():
                self.keyring.receive_bundles(message)
            case outputs.KeysLeft():
                if message.count < self.settings.keys_low:
                    self.keyring.publish(self.settings.keys_full - message.count, now, with_fallback=False)
            case outputs.ServerCounter():
                self.receive_counter(message, now)
        self.keyring.flush()
        return self.finish()

    def receive_inbox(self, packet: InboxPacket, now: float) -> None:
        statement = Statement(
            packet.attestation, tuple((one.make_row(self.device), get_salt(one.common)) for one in packet.deliveries)
        )
        if self.is_known(statement):
            self.effects.out.append(outputs.DeleteInbox(statement.attestation.leaf.next))
        elif self.accept(statement, packet):
            for delivery in packet.deliveries:
                self.reading.process(delivery, now)
            self.keyring.acknowledge(self.reading.take_acks())
            self.inquiry.answer_questions()
            self.trim()
            self.effects.out.append(outputs.DeleteInbox(statement.attestation.leaf.next))

    def receive_receipts(self, packet: ReceiptPacket) -> None:
        known = [(counter, first) for counter, first in packet.receipts if counter in self.outbox.outgoing]
        series = [(self.outbox.outgoing[counter].series, first) for counter, first in known]
        rows = [
            (row, get_salt(message.common))
            for one, first in series
            for row, message in zip(one.make_rows(first), one.messages, strict=True)
        ]
        statement = Statement(packet.attestation, tuple(rows))
        if self.is_known(statement) or not self.accept(statement, packet):
            return
        for counter, first in known:
            self.effects.changes |= self.outbox.note_receipt(counter, first)
            self.acknowledged = max(self.acknowledged, counter)
            self.effects.out.append(outputs.Acknowledged(counter, first))
        self.inquiry.answer_questions()

    def is_known(self, statement: Statement) -> bool:
        """Whether the server repeats itself, because it did not hear from us."""
        end = self.attested.ends[statement.kind]
        if end is None or statement.attestation.leaf.next > end:
            return False
        held = self.attested.statements.get((statement.kind, statement.epoch))
        return held is None or held.attestation == statement.attestation

    def accept(self, statement: Statement, packet: InboxPacket | ReceiptPacket) -> bool:
        """Whether the server's word holds; if not, it is accused, with a proof where there is one."""
        try:
            self.verify_addressed(packet)
            self.effects.changes |= self.attested.accept(statement)
        except Misbehaviour as error:
            self.inquiry.accuse(Culprit.SERVER, None, 0, str(error), error.evidence)
            return False
        except InvalidInput as error:
            self.effects.changes[f"evidence/{statement.kind.name.lower()}/{statement.epoch}"] = packet.encode()
            self.effects.out.append(
                Accuse(Culprit.SERVER, None, 0, str(error), None, self.histories.compute_validated())
            )
            return False
        return True

    def verify_addressed(self, packet: InboxPacket | ReceiptPacket) -> None:
        for delivery in packet.deliveries if isinstance(packet, InboxPacket) else ():
            if self.device not in delivery.recipients:
                raise refuse(f"message `{delivery.sequence}` was delivered to us and is addressed to others")

    # --- generations

    def receive_counter(self, message: outputs.ServerCounter, now: float) -> None:
        """What the server knows of us: send again what it lacks, or find out that we are a restored backup."""
        self.keyring.claimed = ()
        self.keyring.ask_again()
        received, counter = self.attested.ends[Kind.RECEIVED], message.counter
        is_behind = counter > self.outbox.counter or (received is not None and message.deleted > received)
        if is_behind or self.is_backup:
            self.begin_generation(counter, now)
        elif counter < self.acknowledged:
            sentence = f"the server has forgotten series `{self.acknowledged}`; it knows only `{counter}`"
            self.effects.out.append(Accuse(Culprit.SERVER, None, 0, sentence, None, self.histories.compute_validated()))
        for number, outgoing in sorted(self.outbox.outgoing.items()):
            if number > counter:
                self.effects.out.append(outputs.SendSeries(number, outgoing.series.encode()))

    def begin_generation(self, counter: int, now: float) -> None:
        """Start over as the same device: new sessions, new histories, and no accusation about what was lost."""
        self.sessions.forget_all()
        self.effects.changes |= self.outbox.forget_all(counter)
        self.effects.changes |= self.attested.forget_all()
        self.reading.is_restored, self.is_backup, self.acknowledged = True, False, counter
        self.effects.changes[BACKUP_NAME] = None
        self.histories.begin_generation(counter + 1)
        self.effects.out.append(outputs.Restored(counter))
        self.keyring.publish(self.settings.keys_full, now, with_fallback=True)
        self.keyring.acknowledge([*self.reading.take_acks(), *self.histories.transcripts])

    # --- storing

    def trim(self) -> None:
        """Forget what every active peer has confirmed."""
        needed = self.histories.compute_needed_from()
        if needed is not None and not self.doubts:
            self.effects.changes |= self.attested.forget_before(needed)

    def finish(self) -> list[Output]:
        """What was changed is stored first."""
        changes = self.effects.changes
        changes |= self.sessions.take_changes()
        changes |= self.outbox.take_changes()
        changes |= self.doubts.take_changes()
        changes |= dict(self.histories.take_changes())
        if changes or self.effects.out:
            changes[META_NAME] = self.make_meta().encode()
        return self.effects.take()

    def make_meta(self) -> Meta:
        counters = self.outbox.counter, self.acknowledged, self.outbox.drafts_from, self.histories.generation
        ends = self.attested.ends[Kind.SENT], self.attested.ends[Kind.RECEIVED]
        return Meta(*counters, self.reading.is_restored, self.is_suspended, *ends, self.keyring.fallback_at)

    def load(self, records: Mapping[str, bytes]) -> None:
        """Become the device that stored these records."""
        if META_NAME in records:
            self.load_meta(parse_meta(records[META_NAME]))
        for name in sorted(records, key=get_order):
            self.load_record(name, records[name])

    def load_meta(self, meta: Meta) -> None:
        self.outbox.counter, self.outbox.drafts_from = meta.counter, meta.drafts_from
        self.outbox.stored_to = meta.drafts_from
        self.histories.generation, self.acknowledged = meta.generation, meta.acknowledged
        self.reading.is_restored, self.inquiry.is_suspended = meta.is_restored, meta.is_suspended
        self.keyring.fallback_at = meta.fallback_at
        self.attested.ends = {Kind.SENT: meta.sent_end, Kind.RECEIVED: meta.received_end}

    def load_record(self, name: str, value: bytes) -> None:
        kind, _, rest = name.partition("/")
        if kind in ("outgoing", "draft"):
            self.outbox.load(name, value)
        elif name.startswith((ENTRIES, PREFIX)):
            self.histories.load(name, value)
        elif kind == "statement":
            statement = parse_statement(value)
            self.attested.statements[statement.kind, statement.epoch] = statement
        elif kind in ("doubt", "question"):
            self.doubts.load(name, value)
        elif name == BACKUP_NAME:
            self.is_backup = True
        elif kind == "held":
            self.inquiry.held[int(rest)] = parse_held(int(rest), value)
