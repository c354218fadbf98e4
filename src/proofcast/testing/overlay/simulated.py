"""A scenario's stage of simulated peers."""

from proofcast.overlay.settings import Settings
from proofcast.testing.overlay.network import Network


class SimulatedStage(Network):
    """The network under the names that a scenario uses."""

    def add_peers(self, count: int, settings: Settings) -> None:
        for _ in range(count):
            self.add_peer(settings)
        self.settle()

    def add_newcomers(self, count: int) -> None:
        for _ in range(count):
            self.join(self.add_peer().index)

    def enter_group(self, index: int, publisher: int, predicate: str) -> None:
        self.join_group(index, publisher, predicate, predicate)

    def wait(self, seconds: float) -> None:
        self.run(seconds)

    def get_peer_count(self) -> int:
        return len(self.nodes)
