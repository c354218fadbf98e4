"""One message after the other, in order: open it, compare histories, advance them, deliver."""

from dataclasses import dataclass, field

from proofcast.errors import InvalidInput
from proofcast.groups import outputs
from proofcast.groups.dispute import SentQuestion, make_history_question
from proofcast.groups.effects import Effects
from proofcast.groups.histories import Histories
from proofcast.groups.inquiry import Inquiry
from proofcast.groups.outbox import Outbox
from proofcast.groups.packet import Delivery
from proofcast.groups.sealing import (
    CommonPlaintext,
    Payload,
    Sort,
    compute_recipients_digest,
    open_common,
    parse_payload,
)
from proofcast.groups.series import compute_common_digest
from proofcast.groups.session import Sessions
from proofcast.groups.transcript import Comparison, compute_shared
from proofcast.groups.wire import refuse

REASONS = {
    Comparison.DIFFERS: "the sender's history differs from ours at entry `{}`",
    Comparison.BEYOND: "the sender has received `{}` messages that we share, and we have not",
}


@dataclass(slots=True)
class Reading:
    device: bytes
    sessions: Sessions
    histories: Histories
    outbox: Outbox
    inquiry: Inquiry
    effects: Effects
    is_restored: bool = False
    """What comes in sessions of the time before cannot be read, and nobody is to blame."""
    acks: list[bytes] = field(default_factory=list)
    """Devices that began a session with us and have not heard from us in it."""

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
            self.inquiry.doubt(delivery, question, REASONS[comparison].format(payload.index), now)
        if plain.sort is not Sort.OPERATION:
            self.inquiry.handle_control(delivery, plain)
        elif not is_doubtful:
            self.inquiry.deliver(outputs.Deliver(delivery.sequence, delivery.sender, delivery.recipients, plain.body))

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
        self.effects.changes |= self.outbox.note_return(plain.counter)
        return Comparison.UNKNOWN

    def note_unreadable(self, delivery: Delivery, reason: str, now: float) -> None:
        """A message that does not open; its place in the histories is taken all the same."""
        sender = delivery.sender
        if sender != self.device:
            self.outbox.broken.add(sender)
        if self.is_restored and sender not in self.histories.heard:
            self.effects.out.append(outputs.Lost(delivery.sequence, sender))
            self.acks.append(sender)
        else:
            self.inquiry.doubt(delivery, SentQuestion(delivery.sequence), reason, now)

    def take_acks(self) -> list[bytes]:
        acks, self.acks = self.acks, []
        return acks
