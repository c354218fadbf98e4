"""One transcript per peer, advanced together, message by message.

Restarts. A payload names the generations of sender and recipient as the sender knows them. At a message whose payload
names the present generations of both, while their chain was begun under others, both ends restart the chain. The sender
sees its own payload come back and does the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from proofcast.groups.sealing import Payload
from proofcast.groups.transcript import Comparison, Entries, Transcript, compute_base, parse_chunk, parse_transcript

ENTRIES, PREFIX = "entries/", "transcript/"
"""Of the records that hold a chunk of a transcript's entries, and its head; when a device starts, chunks come first."""
UNCONFIRMED_MAX = 4_096
"""Entries that a peer may leave unconfirmed before it is paused: 160 kB."""


@dataclass(slots=True)
class Histories:
    device: bytes
    generation: int = 0
    transcripts: dict[bytes, Transcript] = field(default_factory=dict)
    known: dict[bytes, int] = field(default_factory=dict)
    """Generations of peers, as their payloads say."""
    heard: set[bytes] = field(default_factory=set)
    """Peers that have answered in our present generation."""
    changed: set[bytes] = field(default_factory=set)
    chunks: dict[bytes, dict[int, Entries]] = field(default_factory=dict)
    """Loaded, until their head is."""

    def get(self, peer: bytes) -> Transcript:
        transcript = self.transcripts.get(peer)
        if transcript is None:
            generations = self.generation, self.known.get(peer, 0)
            base = compute_base(self.device, peer, generations)
            is_dormant = self.generation > 0
            transcript = Transcript(generations, [base], is_dormant=is_dormant)
            self.transcripts[peer] = transcript
        return transcript

    def make_payload(self, peer: bytes, key: bytes, *, validates: bool) -> Payload:
        """What to tell `peer` of our shared history, together with a message's key."""
        if peer == self.device or not validates:
            return Payload(key, None, 0, self.generation, self.known.get(peer, 0))
        transcript = self.get(peer)
        generations = self.generation, self.known.get(peer, 0)
        if transcript.is_dormant or transcript.generations != generations:
            return Payload(key, compute_base(self.device, peer, generations), 0, *generations)
        return Payload(key, transcript.head, transcript.index, *generations)

    def judge(self, sender: bytes, payload: Payload) -> Comparison:
        """Compare a peer's payload with our chain; learn its generation and restart where due."""
        known = self.known.get(sender, 0)
        if payload.generation < known:
            return Comparison.DIFFERS
        self.known[sender] = payload.generation
        if payload.peer_generation != self.generation:
            return Comparison.UNKNOWN
        self.heard.add(sender)
        self.restart_where_due(sender, (self.generation, payload.generation))
        if payload.head is None:
            return Comparison.UNKNOWN
        comparison = self.get(sender).compare(payload.index, payload.head)
        if comparison is Comparison.AGREES:
            self.get(sender).validate(payload.index)
            self.changed.add(sender)
        return comparison

    def note_own(self, peer: bytes, generations: tuple[int, int]) -> None:
        """One of our own messages came back; `generations` is what we had told `peer`."""
        if generations == (self.generation, self.known.get(peer, 0)):
            self.restart_where_due(peer, generations)

    def restart_where_due(self, peer: bytes, generations: tuple[int, int]) -> None:
        transcript = self.get(peer)
        if transcript.is_dormant or transcript.generations != generations:
            transcript.restart(compute_base(self.device, peer, generations), generations)
            self.changed.add(peer)

    def append(self, recipients: tuple[bytes, ...], sequence: int, shared: bytes) -> None:
        for peer in recipients:
            if peer != self.device:
                transcript = self.get(peer)
                transcript.append(sequence, shared)
                self.changed.add(peer)
                if len(transcript.digests) > UNCONFIRMED_MAX:
                    self.pause(peer)

    def pause(self, peer: bytes) -> None:
        transcript = self.get(peer)
        transcript.is_paused = True
        transcript.trim(transcript.index)
        self.changed.add(peer)

    def begin_generation(self, number: int) -> None:
        """Forget every chain; each begins anew with our next message to that peer."""
        self.generation, self.heard = number, set()
        for peer, transcript in self.transcripts.items():
            transcript.is_dormant, transcript.validated = True, 0
            transcript.trim(transcript.index)
            self.changed.add(peer)

    def compute_needed_from(self) -> int | None:
        """The lowest sequence that an active peer has not confirmed; None where nobody is left to ask."""
        active = [one.validated for one in self.transcripts.values() if not one.is_paused and not one.is_dormant]
        return min(active, default=None)

    def compute_validated(self) -> int:
        """Sequence up to which everybody active has confirmed what we share."""
        return self.compute_needed_from() or 0

    def take_changes(self) -> Iterator[tuple[str, bytes | None]]:
        changed, self.changed = self.changed, set()
        for peer in changed:
            known, transcript = self.known.get(peer, 0).to_bytes(4, "big") + bytes([peer in self.heard]), self.get(peer)
            yield f"{PREFIX}{peer.hex()}", known + transcript.encode_head()
            yield from ((f"{ENTRIES}{peer.hex()}/{chunk}", value) for chunk, value in transcript.take_chunks())

    def load(self, name: str, value: bytes) -> None:
        _, peer_hex, *chunk = name.split("/")
        peer = bytes.fromhex(peer_hex)
        if chunk:
            self.chunks.setdefault(peer, {})[int(chunk[0])] = parse_chunk(value)
            return
        self.known[peer] = int.from_bytes(value[:4], "big")
        if value[4]:
            self.heard.add(peer)
        self.transcripts[peer] = parse_transcript(value[5:], self.chunks.pop(peer, {}))
