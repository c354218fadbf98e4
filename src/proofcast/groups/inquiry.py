"""What happens when something does not fit: delivering stops, the sender is asked, its answer leads to a verdict.

One question per peer at a time. What comes meanwhile is held until the application has decided how to go on.
"""

from dataclasses import dataclass, field

from proofcast.errors import InvalidInput
from proofcast.groups import outputs
from proofcast.groups.attested import Attested
from proofcast.groups.dispute import Question, Verdict
from proofcast.groups.doubts import Doubt, Doubts
from proofcast.groups.effects import Effects
from proofcast.groups.histories import Histories
from proofcast.groups.outbox import Draft, Outbox
from proofcast.groups.outputs import Accuse, Culprit
from proofcast.groups.packet import Delivery
from proofcast.groups.records import encode_held
from proofcast.groups.sealing import CommonPlaintext, Sort


@dataclass(slots=True)
class Inquiry:
    device: bytes
    outbox: Outbox
    histories: Histories
    attested: Attested
    doubts: Doubts
    effects: Effects
    is_suspended: bool = False
    """Nothing is delivered until the application says how to go on."""
    held: dict[int, outputs.Deliver] = field(default_factory=dict)
    """What came since, by sequence."""

    def deliver(self, deliver: outputs.Deliver) -> None:
        if not self.is_suspended:
            self.effects.out.append(deliver)
            return
        self.held[deliver.sequence] = deliver
        self.effects.changes[f"held/{deliver.sequence}"] = encode_held(deliver)

    def doubt(self, delivery: Delivery, question: Question, reason: str, now: float) -> None:
        """Stop delivering and ask; one question per peer at a time."""
        peer = delivery.sender
        self.is_suspended = True
        if peer in self.doubts.asked:
            return
        self.effects.out.append(outputs.Suspect(peer, delivery.sequence, reason))
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
            self.effects.out.append(outputs.DemandLeaf())

    def conclude(self, peer: bytes, verdict: Verdict) -> None:
        self.doubts.close(peer)
        device = None if verdict.culprit is Culprit.SERVER else peer
        self.accuse(verdict.culprit, device, verdict.sequence, verdict.sentence, verdict.proof)

    def accuse(self, culprit: Culprit, device: bytes | None, sequence: int, sentence: str, proof: bytes | None) -> None:
        self.is_suspended = True
        accusation = Accuse(culprit, device, sequence, sentence, proof, self.histories.compute_validated())
        if proof is not None:
            self.effects.changes[f"proof/{sequence}"] = proof
        self.effects.out.append(accusation)

    def release(self) -> None:
        """Ask no more, and deliver what was held."""
        self.doubts.close_all()
        self.effects.changes |= {f"held/{sequence}": None for sequence in self.held}
        self.effects.out += [self.held[sequence] for sequence in sorted(self.held)]
        self.held, self.is_suspended = {}, False
