"""A simulated chain on which a contract publishes: real logs of `Topics`, sequences counted along each branch."""

from collections import Counter

from proofcast.ethereum.receipt import Log
from proofcast.feed.publication import NO_KEY
from proofcast.onchain.events import TopicCreated, compute_type_hash
from proofcast.onchain.published import PUBLISHED, WORD
from proofcast.testing.chain.simulator import ChainSimulator, Change, SimulatedBlock

TOPICS_ADDRESS = b"\1" * 20
PUBLISHER = b"\2" * 20


class PublishingChain(ChainSimulator):
    """Every transaction publishes as many events as `events_each` says, each to the next topic."""

    def __init__(
        self,
        seed: int,
        *,
        topics: int = 2,
        transactions: int = 2,
        events_each: int = 2,
        payload_length: int = 32,
        finalized_depth: int = 8,
    ) -> None:
        self.names = [f"topic {at}" for at in range(topics)]
        self.published: dict[bytes, Counter[bytes]] = {}
        """How many events each topic has, by the hash of the block."""
        self._shape = (transactions, events_each, payload_length)
        self._counts = Counter[bytes]()
        super().__init__(seed, finalized_depth=finalized_depth)
        self.ids = [self.random.randbytes(32) for _ in self.names]

    def _mine(self, change: Change) -> SimulatedBlock:
        self._counts = self.published.get(self.head.hash, Counter()).copy()
        is_first = len(self.canonical) == 1
        drawn = [self._create()] if is_first else [self._publish() for _ in range(self._shape[0])]
        block = self._build(self.head, drawn, change)
        self.canonical.append(block)
        self.blocks[block.hash] = block
        self.published[block.hash] = self._counts
        return block

    def _create(self) -> list[Log]:
        first = compute_type_hash(TopicCreated)
        return [
            Log(TOPICS_ADDRESS, (first, topic), bytes(WORD) + encode_bytes(name.encode(), 2 * WORD))
            for topic, name in zip(self.ids, self.names, strict=True)
        ]

    def _publish(self) -> list[Log]:
        return [self._draw_publication() for _ in range(self._shape[1])]

    def _draw_publication(self) -> Log:
        topic = self.ids[self._counts.total() % len(self.ids)]
        self._counts[topic] += 1
        sequence = self._counts[topic].to_bytes(WORD)
        payload = self.random.randbytes(self._shape[2])
        data = bytes(12) + PUBLISHER + encode_bytes(payload, 2 * WORD)
        return Log(TOPICS_ADDRESS, (PUBLISHED, topic, sequence, NO_KEY), data)


def encode_bytes(data: bytes, place: int) -> bytes:
    """By the contract ABI: where it stands, its length, itself, filled up to whole words."""
    return place.to_bytes(WORD) + len(data).to_bytes(WORD) + data + bytes(-len(data) % WORD)
