"""Seeded runs of a whole system: some devices, one server, random conversation; somebody may lie."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from nacl.signing import SigningKey

from proofcast.groups.client import Client, Settings
from proofcast.groups.outbox import Draft, Outbox
from proofcast.groups.outputs import Accuse
from proofcast.testing.groups.clients import ClientLie, Crash, Device, LyingOutbox
from proofcast.testing.groups.lies import ServerLie
from proofcast.testing.groups.server import LyingServer

SETTINGS = Settings(answer_s_max=12.0, keys_low=2, keys_full=8)
"""Times are in epochs here; few keys, because making them is most of a short run's work."""


@dataclass(slots=True)
class World:
    seed: int
    size: int = 3
    lie: ServerLie | None = None
    client_lie: ClientLie | None = None
    liars: int = 1
    """How many of the devices lie, or collude with the server: the last ones."""
    settings: Settings = SETTINGS
    trouble: float = 0.0
    """Chance of crashes and of going away."""
    random: Random = field(init=False)
    server: LyingServer = field(init=False)
    devices: list[Device] = field(init=False)
    victims: list[bytes] = field(default_factory=list)
    """To whom the lying client lies: the first device."""
    away: dict[str, float] = field(default_factory=dict)
    """Until when a device does not connect."""
    now: float = 0.0
    said: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.server = LyingServer(SigningKey(self.random.randbytes(32)), self.random, self.lie)
        self.devices = [self.make_device(number) for number in range(self.size)]
        victim = self.devices[0].id
        self.server.victim = victim if self.lie is not None else None
        self.victims.append(victim)
        for device in self.devices:
            self.let(device, lambda one: one.connect(self.now))

    def make_device(self, number: int) -> Device:
        is_liar = number >= self.size - self.liars and (self.client_lie is not None or self.lie is ServerLie.COLLUDE)
        identity = SigningKey(self.random.randbytes(32))
        make_outbox = self.make_lying_outbox if is_liar else None
        name = chr(ord("a") + number)
        return Device(name, identity, self.server, self.random, self.settings, self.trouble / 10, make_outbox)

    def make_lying_outbox(self, client: Client) -> Outbox:
        """Of a device that lies to the first one."""
        common = client.device, client.sessions, client.histories, client.draw, client.settings.validate_every
        confederate = self.server if self.lie is ServerLie.COLLUDE else None
        return LyingOutbox(*common, lie=self.client_lie, victims=self.victims, random=self.random, server=confederate)

    @property
    def honest(self) -> list[Device]:
        return [device for device in self.devices if device.make_outbox is None]

    @property
    def accusations(self) -> list[Accuse]:
        """Of honest devices."""
        return [accusation for device in self.honest for accusation in device.accusations]

    @property
    def trace(self) -> list[str]:
        return [line for device in self.devices for line in device.trace]

    def run(self, epochs: int) -> None:
        for _ in range(epochs):
            self.step()

    def run_until_accused(self, epochs_max: int = 60) -> None:
        for _ in range(epochs_max):
            if self.accusations:
                return
            self.step()

    def step(self) -> None:
        """Some devices speak, an epoch is closed, those who are not away read."""
        for device in self.random.sample(self.devices, self.random.randint(1, self.size)):
            if not device.client.is_suspended and not self.is_away(device):
                self.let(device, lambda one: one.send(self.make_drafts(one), self.now))
        self.server.close()
        self.now += 1.0
        for device in self.devices:
            if not self.is_away(device):
                self.let(device, self.read)

    def read(self, device: Device) -> None:
        device.read(self.now)
        device.perform(device.client.tick(self.now), self.now)

    def let(self, device: Device, act: Callable[[Device], None]) -> None:
        """Do something that may end in a crash, from which the device starts again."""
        try:
            act(device)
        except Crash:
            self.let(device, lambda one: one.restart(self.now))

    def is_away(self, device: Device) -> bool:
        """For long, now and then."""
        until = self.away.get(device.name, 0.0)
        if until <= self.now and self.random.random() < self.trouble / 2:
            until = self.away[device.name] = self.now + self.random.randint(1, 20)
        return until > self.now

    def rest(self, epochs: int = 3) -> None:
        """Everybody is back and reads until nothing is on its way."""
        self.away, self.trouble = {}, 0.0
        for device in self.devices:
            device.crash_rate = 0.0
        for _ in range(epochs):
            for device in self.devices:
                device.connect(self.now)
                self.read(device)
            self.server.close()
            self.now += 1.0
        for device in self.devices:
            self.read(device)

    def make_drafts(self, device: Device) -> tuple[Draft, ...]:
        return tuple(self.make_draft(device) for _ in range(self.random.choice((1, 1, 2, 3))))

    def make_draft(self, device: Device) -> Draft:
        others = [one.id for one in self.devices if one is not device]
        recipients = self.random.sample(others, self.random.randint(1, len(others)))
        self.said += 1
        return Draft(f"{device.name} says {self.said}".encode(), tuple(recipients))
