"""A feed whose logs are publications of one topic, counted as the contract would."""

from proofcast.ethereum.receipt import Log
from proofcast.onchain.events import HASH_BY_NAME, Published
from proofcast.testing.broker.serving import TOPICS
from proofcast.testing.feed.story import Story

TOPIC = b"\2" * 32
PUBLISHER = b"\3" * 20
WORD = 32


class Publications(Story):
    """A story that only grows, publication after publication."""

    published = 0

    def make_log(self) -> Log:
        self.published += 1
        payload = f"event {self.published}".encode()
        return encode_published(Published(TOPIC, self.published, bytes(32), PUBLISHER, payload))

    def publish(self, count: int) -> None:
        """One more block, with this many publications."""
        self.adopt([self.make_block(self.path[-1], [self.make_log() for _ in range(count)])])


def encode_published(published: Published) -> Log:
    """The log by which the contract says it."""
    topics = (
        HASH_BY_NAME["Published"],
        published.topic,
        published.sequence.to_bytes(WORD),
        published.key.rjust(WORD, b"\0"),
    )
    payload = published.payload
    words = [published.publisher.rjust(WORD, b"\0"), (2 * WORD).to_bytes(WORD), len(payload).to_bytes(WORD)]
    return Log(TOPICS, topics, b"".join(words) + payload.ljust(-(-len(payload) // WORD) * WORD, b"\0"))
