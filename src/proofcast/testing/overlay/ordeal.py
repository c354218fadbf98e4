"""A network put through what the overlay promises to survive, chosen by the seed; afterwards nobody may miss anything.

- up to `f` peers with consecutive positions crash at once while events are on their way, and some come back;
- the network splits in two, both sides go on publishing, and heals;
- newcomers enter close to everything, take over rendezvous while events arrive, and subscribe themselves;
- all of it one after the other; every second time over links that lose messages.

What is promised is what the log can repair: a peer must be back within `log_s`, and two refreshes must pass. An event
whose publisher vanishes before `Settle` is not promised to anybody.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from proofcast.overlay.settings import Settings
from proofcast.testing.overlay.links import Link
from proofcast.testing.overlay.network import Network, make_network
from proofcast.testing.overlay.oracle import Verdict

PEERS = 30
PUBLISHERS = range(22, 30)
SUBSCRIBERS = range(22)
TOPICS = ("surf", "ski", "bali", "ipfs", "news")
SETTINGS = Settings(refresh_s=60, resend_s=2, bucket_contacts=8)
HEALING_S = 4 * SETTINGS.refresh_s
"""The first refresh after a partition may come too early, the second finds everybody, the third what was missed."""


@dataclass(slots=True)
class Ordeal:
    seed: int
    network: Network
    dice: random.Random

    def draw_predicate(self) -> str:
        words = [f"{topic} T" for topic in self.dice.sample(TOPICS, self.dice.randint(1, 2))]
        if self.dice.random() < 0.5:
            low = self.dice.randint(0, 900)
            words.append(f"price R {low} {low + self.dice.randint(50, 400)}")
        return "/".join(words)

    def draw_attributes(self) -> str:
        words = [f"{topic} T" for topic in self.dice.sample(TOPICS, self.dice.randint(1, 3))]
        if self.dice.random() < 0.7:
            words.append(f"price V {self.dice.randint(0, 1000)}")
        return "/".join(words)

    def publish(self, count: int) -> None:
        for _ in range(count):
            present = sorted(self.network.get_present())
            publishers = [index for index in present if index in PUBLISHERS] or present
            self.network.publish(self.dice.choice(publishers), self.draw_attributes())
            self.network.run(self.dice.random() * 0.05)

    def crash_neighbours(self) -> None:
        ordered = sorted(self.network.nodes, key=lambda node: node.contact.position)
        first = self.dice.randrange(len(ordered))
        victims = [ordered[(first + place) % len(ordered)].index for place in range(SETTINGS.backups)]
        for index in victims:
            self.network.crash(index)
        self.publish(4)
        self.network.run(self.dice.choice((1.0, 20.0)))
        if self.dice.random() < 0.5:
            for index in victims:
                self.network.restart(index)

    def split(self) -> None:
        indices = [node.index for node in self.network.nodes]
        self.dice.shuffle(indices)
        cut = self.dice.randint(4, len(indices) - 4)
        self.network.split(indices[:cut], indices[cut:])
        self.publish(4)
        self.network.run(self.dice.choice((3.0, 30.0, 90.0)))
        self.publish(3)
        self.network.run(2)
        self.network.heal()

    def take_over(self) -> None:
        for _ in range(4):
            newcomer = self.network.add_peer()
            self.network.join(newcomer.index)
            self.publish(2)
            self.network.run(self.dice.random())
            self.network.subscribe(newcomer.index, self.draw_predicate())

    def everything(self) -> None:
        for blow in (self.crash_neighbours, self.split, self.take_over):
            blow()
            self.network.run(self.dice.random() * 10)


BLOWS: tuple[Callable[[Ordeal], None], ...] = (
    Ordeal.crash_neighbours,
    Ordeal.split,
    Ordeal.take_over,
    Ordeal.everything,
)


def undergo(seed: int) -> tuple[Network, Verdict]:
    """Run the ordeal of a seed to its end."""
    link = Link(jitter_s=0.01, loss=0.02 if seed // len(BLOWS) % 2 else 0.0)
    ordeal = Ordeal(seed, make_network(PEERS, seed, link, SETTINGS), random.Random(seed))
    for index in SUBSCRIBERS:
        ordeal.network.subscribe(index, ordeal.draw_predicate())
    ordeal.network.run(10)
    ordeal.publish(3)
    BLOWS[seed % len(BLOWS)](ordeal)
    ordeal.network.run(5)
    ordeal.publish(3)
    ordeal.network.run(HEALING_S)
    return ordeal.network, ordeal.network.oracle.judge(ordeal.network.get_present())
