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
from dataclasses import dataclass, field, replace
from enum import Enum

from proofcast.errors import InvalidInput, Misbehaviour, Reason, Unavailable
from proofcast.groups import outputs
from proofcast.groups.attested import Attested, Changes, Statement, parse_statement
from proofcast.groups.dispute import Question, SentQuestion, Verdict, make_history_question
from proofcast.groups.doubts import Doubt, Doubts
from proofcast.groups.histories import PREFIX, Histories
from proofcast.groups.identity import KeyBundle
from proofcast.groups.outbox import Draft, Outbox
from proofcast.groups.outputs import Accuse, Culprit, Output
from proofcast.groups.packet import Delivery, InboxPacket, ReceiptPacket
from proofcast.groups.proof import Kind
from proofcast.groups.records import BACKUP_NAME, META_NAME, Meta, encode_held, get_order, parse_held, parse_meta
from proofcast.groups.sealing import (
    CommonPlaintext,
    Payload,
    Sort,
    compute_recipients_digest,
    open_common,
    parse_payload,
)
from proofcast.groups.series import compute_common_digest, get_salt
from proofcast.groups.session import Sessions
from proofcast.groups.transcript import Comparison, compute_shared
from proofcast.groups.wire import refuse

REASONS = {
    Comparison.DIFFERS: "the sender's history differs from ours at entry `{}`",
    Comparison.BEYOND: "the sender has received `{}` messages that we share, and we have not",
}

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
    histories: Histories = field(init=False)
    attested: Attested = field(init=False)
    outbox: Outbox = field(init=False)
    doubts: Doubts = field(init=False)
    acknowledged: int = 0
    """Counter of the last series that the server attested."""
    is_restored: bool = False
    """What comes in sessions of the time before cannot be read, and nobody is to blame."""
    is_backup: bool = False
    """Loaded from a backup, and not connected since."""
    is_suspended: bool = False
    """Nothing is delivered until the application says how to go on."""
    fallback_at: float = 0.0
    claimed: tuple[bytes, ...] = ()
    """Devices whose keys the server was asked for."""
    unreachable: set[bytes] = field(default_factory=set)
    """Devices of which it had none, until we ask again."""
    held: dict[int, outputs.Deliver] = field(default_factory=dict)
    acks: list[bytes] = field(default_factory=list)
    changes: Changes = field(default_factory=dict)
    out: list[Output] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.histories = Histories(self.device)
        self.attested = Attested(self.device, self.server_key)
        self.doubts = Doubts(self.settings.answer_s_max)
        self.outbox = Outbox(self.device, self.sessions, self.histories, self.draw, self.settings.validate_every)

    # --- commands

    def register(self, now: float) -> list[Output]:
        """A new device: give the server keys, so that others can write to it."""
        self.publish_keys(self.settings.keys_full, now, with_fallback=True)
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
        self.flush()
        return self.finish()

    def pause(self, peer: bytes) -> list[Output]:
        """A peer is away for long: keep nothing on its account until it is back and agrees with us again."""
        self.histories.pause(peer)
        self.trim()
        return self.finish()

    def recover(self, recovery: Recovery, now: float) -> list[Output]:
        """Go on after an accusation; halting is not to call this."""
        validated = self.compute_validated()
        if recovery is Recovery.ROLL_BACK:
            self.out.append(outputs.RolledBack(validated + 1))
        else:
            self.out.append(outputs.SnapshotWanted(max(self.held, default=validated)))
        self.doubts.close_all()
        self.changes |= {f"held/{sequence}": None for sequence in self.held}
        self.out += [self.held[sequence] for sequence in sorted(self.held)]
        self.held, self.is_suspended = {}, False
        self.histories.begin_generation(self.outbox.counter + 1)
        self.flush()
        return self.finish()

    def tick(self, now: float) -> list[Output]:
        for peer, verdict in self.doubts.find_overdue(now):
            self.conclude(peer, verdict)
        if now >= self.fallback_at + self.settings.fallback_s:
            self.publish_keys(0, now, with_fallback=True)
        self.unreachable = set()
        self.flush()
        return self.finish()

    def deadline(self) -> float | None:
        return min([self.fallback_at + self.settings.fallback_s, *self.doubts.get_deadlines()])

    # --- what comes in

    def receive(self, message: Input, now: float) -> list[Output]:
        match message:
            case InboxPacket():
                self.receive_inbox(message, now)
            case ReceiptPacket():
                self.receive_receipts(message)
            case outputs.Bundles():
                self.receive_bundles(message)
            case outputs.KeysLeft():
                if message.count < self.settings.keys_low:
                    self.publish_keys(self.settings.keys_full - message.count, now, with_fallback=False)
            case outputs.ServerCounter():
                self.receive_counter(message, now)
        self.flush()
        return self.finish()

    def receive_inbox(self, packet: InboxPacket, now: float) -> None:
        statement = Statement(
            packet.attestation, tuple((one.make_row(self.device), get_salt(one.common)) for one in packet.deliveries)
        )
        if self.is_known(statement):
            self.out.append(outputs.DeleteInbox(statement.attestation.leaf.next))
        elif self.accept(statement, packet):
            for delivery in packet.deliveries:
                self.process(delivery, now)
            self.acknowledge_sessions()
            self.answer_questions()
            self.trim()
            self.out.append(outputs.DeleteInbox(statement.attestation.leaf.next))

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
            self.changes |= self.outbox.note_receipt(counter, first)
            self.acknowledged = max(self.acknowledged, counter)
            self.out.append(outputs.Acknowledged(counter, first))
        self.answer_questions()

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
            self.changes |= self.attested.accept(statement)
        except Misbehaviour as error:
            self.accuse(Culprit.SERVER, None, 0, str(error), error.evidence)
            return False
        except InvalidInput as error:
            self.changes[f"evidence/{statement.kind.name.lower()}/{statement.epoch}"] = packet.encode()
            self.out.append(Accuse(Culprit.SERVER, None, 0, str(error), None, self.compute_validated()))
            return False
        return True

    def verify_addressed(self, packet: InboxPacket | ReceiptPacket) -> None:
        for delivery in packet.deliveries if isinstance(packet, InboxPacket) else ():
            if self.device not in delivery.recipients:
                raise refuse(f"message `{delivery.sequence}` was delivered to us and is addressed to others")

    # --- one message

    def process(self, delivery: Delivery, now: float) -> None:
        common = compute_common_digest(delivery.common)
        shared = compute_shared(delivery.sequence, delivery.sender, common, delivery.recipients)
        try:
            payload, plain = self.open(delivery)
        except InvalidInput as error:
            self.histories.append(delivery.recipients, delivery.sequence, shared)
            self.note_unreadable(delivery, str(error), now)
            return
        comparison = self.compare(delivery, plain, payload)
        self.histories.append(delivery.recipients, delivery.sequence, shared)
        is_doubtful = comparison in (Comparison.DIFFERS, Comparison.BEYOND)
        if is_doubtful:
            question = make_history_question(self.histories.get(delivery.sender), payload.index)
            self.doubt(delivery, question, REASONS[comparison].format(payload.index), now)
        if plain.sort is not Sort.OPERATION:
            self.handle_control(delivery, plain)
        elif not is_doubtful:
            self.deliver(outputs.Deliver(delivery.sequence, delivery.sender, delivery.recipients, plain.body))

    def open(self, delivery: Delivery) -> tuple[Payload, CommonPlaintext]:
        """Payload and plaintext, if what is inside says the same as what the server says outside."""
        opened = self.sessions.decrypt(delivery.sender, delivery.form, delivery.ciphertext)
        payload = parse_payload(opened.payload)
        if opened.is_new:
            self.acks.append(delivery.sender)
        plain = open_common(delivery.common, payload.key)
        inside = plain.sender, plain.index, plain.count, plain.recipients
        recipients = compute_recipients_digest(delivery.recipients)
        outside = delivery.sender, delivery.index, delivery.count, recipients
        if inside != outside:
            raise refuse(
                f"message `{delivery.sequence}` names another sender, series or recipients inside than outside"
            )
        return payload, plain

    def compare(self, delivery: Delivery, plain: CommonPlaintext, payload: Payload) -> Comparison:
        if delivery.sender != self.device:
            return self.histories.judge(delivery.sender, payload)
        outgoing = self.outbox.outgoing.get(plain.counter)
        for peer, generations in outgoing.told.items() if outgoing else ():
            if peer != self.device and peer in delivery.recipients:
                self.histories.note_own(peer, generations)
        self.changes |= self.outbox.note_return(plain.counter)
        return Comparison.UNKNOWN

    def note_unreadable(self, delivery: Delivery, reason: str, now: float) -> None:
        """A message that does not open; its place in the histories is taken all the same."""
        sender = delivery.sender
        if sender != self.device:
            self.outbox.broken.add(sender)
        if self.is_restored and sender not in self.histories.heard:
            self.out.append(outputs.Lost(delivery.sequence, sender))
            self.acks.append(sender)
        else:
            self.doubt(delivery, SentQuestion(delivery.sequence), reason, now)

    def deliver(self, deliver: outputs.Deliver) -> None:
        if not self.is_suspended:
            self.out.append(deliver)
            return
        self.held[deliver.sequence] = deliver
        self.changes[f"held/{deliver.sequence}"] = encode_held(deliver)

    # --- doubts and verdicts

    def doubt(self, delivery: Delivery, question: Question, reason: str, now: float) -> None:
        """Stop delivering and ask; one question per peer at a time."""
        peer = delivery.sender
        self.is_suspended = True
        if peer in self.doubts.asked:
            return
        self.out.append(outputs.Suspect(peer, delivery.sequence, reason))
        if peer != self.device:
            self.doubts.open(peer, Doubt(question, delivery.sequence, now))
            self.outbox.add((Draft(question.encode(), (peer,), Sort.QUESTION),))

    def handle_control(self, delivery: Delivery, plain: CommonPlaintext) -> None:
        if delivery.sender == self.device:
            return
        try:
            if plain.sort is Sort.QUESTION:
                self.doubts.note_question(delivery.sequence, delivery.sender, plain.body)
            elif plain.sort is Sort.ANSWER:
                self.receive_answer(delivery.sender, plain.body)
        except InvalidInput as error:
            self.accuse(Culprit.PEER, delivery.sender, delivery.sequence, str(error), None)

    def receive_answer(self, peer: bytes, body: bytes) -> None:
        verdict = self.doubts.judge(peer, body, self.attested)
        if verdict is not None:
            self.conclude(peer, verdict)

    def answer_questions(self) -> None:
        """Those for which the server's word is there; for the others it is demanded."""
        for peer, answer in self.doubts.take_answers(self.histories, self.attested):
            self.outbox.add((Draft(answer.encode(), (peer,), Sort.ANSWER),))
        if self.doubts.is_waiting(self.attested):
            self.out.append(outputs.DemandLeaf())

    def conclude(self, peer: bytes, verdict: Verdict) -> None:
        self.doubts.close(peer)
        device = None if verdict.culprit is Culprit.SERVER else peer
        self.accuse(verdict.culprit, device, verdict.sequence, verdict.sentence, verdict.proof)

    def accuse(self, culprit: Culprit, device: bytes | None, sequence: int, sentence: str, proof: bytes | None) -> None:
        self.is_suspended = True
        accusation = Accuse(culprit, device, sequence, sentence, proof, self.compute_validated())
        if proof is not None:
            self.changes[f"proof/{sequence}"] = proof
        self.out.append(accusation)

    def compute_validated(self) -> int:
        return self.histories.compute_needed_from() or 0

    # --- keys, sessions, generations

    def flush(self) -> None:
        """Seal and send what has its keys; ask for those of the first that has not."""
        for _ in range(len(self.outbox.drafts)):
            missing = self.outbox.find_missing()
            if self.unreachable.intersection(missing):
                self.give_up(missing)
            elif missing:
                self.claim(missing)
                return
            else:
                outgoing, changes = self.outbox.seal_next()
                self.changes |= changes
                self.out.append(outputs.SendSeries(outgoing.series.counter, outgoing.series.encode()))

    def claim(self, devices: tuple[bytes, ...]) -> None:
        if devices != self.claimed:
            self.claimed = devices
            self.out.append(outputs.ClaimKeys(devices))

    def give_up(self, missing: tuple[bytes, ...]) -> None:
        """The application hears that an operation cannot be sent; what we ask and answer is tried again later."""
        drafts = self.outbox.drop_next()
        if all(draft.sort is Sort.OPERATION for draft in drafts):
            self.out.append(outputs.NoKeys(tuple(one for one in missing if one in self.unreachable)))
        else:
            self.outbox.add(drafts)

    def receive_bundles(self, message: outputs.Bundles) -> None:
        wanted, self.claimed = set(self.claimed), ()
        opened = {one.device for one in message.bundles if one.device in wanted and self.open_session(one)}
        self.unreachable |= wanted - opened

    def open_session(self, bundle: KeyBundle) -> bool:
        """Whether the keys are the device's own; if not, somebody stands in the middle."""
        try:
            bundle.verify(bundle.device)
            self.sessions.open_with(bundle)
        except InvalidInput as error:
            self.out.append(Accuse(Culprit.SERVER, None, 0, str(error), None, self.compute_validated()))
            return False
        self.outbox.broken.discard(bundle.device)
        return True

    def acknowledge_sessions(self) -> None:
        """Whoever began a session hears from us, which ends the longer form of its messages."""
        peers = [peer for peer in dict.fromkeys(self.acks) if peer != self.device]
        self.acks = []
        if peers:
            self.outbox.add(tuple(Draft(b"", (peer,), Sort.ACK) for peer in peers))

    def publish_keys(self, count: int, now: float, *, with_fallback: bool) -> None:
        bundles = self.sessions.make_bundles(count) if count else []
        if with_fallback:
            bundles.append(self.sessions.make_fallback())
            self.fallback_at = now
        self.out.append(outputs.PublishKeys(tuple(bundles)))

    def receive_counter(self, message: outputs.ServerCounter, now: float) -> None:
        """What the server knows of us: send again what it lacks, or find out that we are a restored backup."""
        self.claimed, self.unreachable = (), set()
        received, counter = self.attested.ends[Kind.RECEIVED], message.counter
        is_behind = counter > self.outbox.counter or (received is not None and message.deleted > received)
        if is_behind or self.is_backup:
            self.begin_generation(counter, now)
        elif counter < self.acknowledged:
            sentence = f"the server has forgotten series `{self.acknowledged}`; it knows only `{counter}`"
            self.out.append(Accuse(Culprit.SERVER, None, 0, sentence, None, self.compute_validated()))
        for number, outgoing in sorted(self.outbox.outgoing.items()):
            if number > counter:
                self.out.append(outputs.SendSeries(number, outgoing.series.encode()))

    def begin_generation(self, counter: int, now: float) -> None:
        """Start over as the same device: new sessions, new histories, and no accusation about what was lost."""
        self.sessions.forget_all()
        self.changes |= self.outbox.forget_all(counter)
        self.changes |= {one.name: None for one in self.attested.statements.values()}
        self.attested = replace(self.attested, ends=dict.fromkeys(Kind), statements={})
        self.is_restored, self.is_backup, self.acknowledged = True, False, counter
        self.changes[BACKUP_NAME] = None
        self.histories.begin_generation(counter + 1)
        self.out.append(outputs.Restored(counter))
        self.publish_keys(self.settings.keys_full, now, with_fallback=True)
        self.acks += self.histories.transcripts
        self.acknowledge_sessions()

    # --- storing

    def trim(self) -> None:
        """Forget what every active peer has confirmed."""
        needed = self.histories.compute_needed_from()
        if needed is not None and not self.doubts:
            self.changes |= self.attested.forget_before(needed)

    def finish(self) -> list[Output]:
        """What was changed is stored first."""
        self.changes |= self.sessions.take_changes()
        self.changes |= self.outbox.take_changes()
        self.changes |= self.doubts.take_changes()
        self.changes |= dict(self.histories.take_changes())
        out, self.out = self.out, []
        if self.changes or out:
            self.changes[META_NAME] = self.make_meta().encode()
        changes, self.changes = self.changes, {}
        return [outputs.Store(changes), *out] if changes else out

    def make_meta(self) -> Meta:
        counters = self.outbox.counter, self.acknowledged, self.outbox.drafts_from, self.histories.generation
        ends = self.attested.ends[Kind.SENT], self.attested.ends[Kind.RECEIVED]
        return Meta(*counters, self.is_restored, self.is_suspended, *ends, self.fallback_at)

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
        self.is_restored, self.is_suspended, self.fallback_at = meta.is_restored, meta.is_suspended, meta.fallback_at
        self.attested.ends = {Kind.SENT: meta.sent_end, Kind.RECEIVED: meta.received_end}

    def load_record(self, name: str, value: bytes) -> None:
        kind, _, rest = name.partition("/")
        if kind in ("outgoing", "draft"):
            self.outbox.load(name, value)
        elif name.startswith(PREFIX):
            self.histories.load(name, value)
        elif kind == "statement":
            statement = parse_statement(value)
            self.attested.statements[statement.kind, statement.epoch] = statement
        elif kind in ("doubt", "question"):
            self.doubts.load(name, value)
        elif name == BACKUP_NAME:
            self.is_backup = True
        elif kind == "held":
            self.held[int(rest)] = parse_held(int(rest), value)
