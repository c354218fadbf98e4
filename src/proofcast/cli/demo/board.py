"""The demonstration's contracts: a flight board that publishes, and three that are subscribed, one of them hostile."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eth_hash.auto import keccak

from proofcast.chain.io.rpc import RpcClient
from proofcast.onchain import lens, topics
from proofcast.onchain.abi import Call, encode_call, encode_values, reading
from proofcast.onchain.deployment import Contracts
from proofcast.onchain.events import Delivered, Subscribed, TopicCreated
from proofcast.onchain.io.artefacts import get_contracts, load_artefact
from proofcast.onchain.io.publishing import quote_gas
from proofcast.onchain.io.reading import read
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.io.sender import Sender
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.policy import Terms
from proofcast.onchain.request import Request, ask
from proofcast.onchain.subscriber import subscribe_to

TERMS = Terms(callback_gas=100_000, max_price_mwei=100_000, max_share_gwei=10_000_000)
DEPOSIT_WEI = 10**16


@dataclass(frozen=True, slots=True)
class Guest:
    """A subscribed contract."""

    title: str
    contract: bytes
    index: int
    tell: Callable[[RpcClient, bytes, str], str]
    """What the contract itself says it knows of a flight."""


@dataclass(frozen=True, slots=True)
class Served:
    """What one event meant for one contract."""

    title: str
    outcome: Outcome
    says: str
    paid_gwei: int


@dataclass(frozen=True, slots=True)
class Scene:
    sender: Sender
    contracts: Contracts
    board: bytes
    topic: bytes


def tell_insurance(rpc: RpcClient, contract: bytes, flight: str) -> str:
    call = Call(encode_call("isLate(bytes32)", bytes(keccak(flight.encode()))), reading(bool, "(bool)"))
    return f"pays for {flight}" if read(rpc, contract, call) else f"pays nobody for {flight}"


def tell_counter(rpc: RpcClient, contract: bytes, flight: str) -> str:
    return f"has seen {read(rpc, contract, Call(encode_call('count()'), topics.READ_INT))}"


def tell_nothing(rpc: RpcClient, contract: bytes, flight: str) -> str:
    return "burns all its gas"


def create(sender: Sender, name: str, arguments: bytes, key: str) -> Receipt:
    return sender.send(Request(None, load_artefact(name).creation_code + arguments), f"create {key}")


def set_scene(sender: Sender) -> Scene:
    """A flight board, whose oracle is the sender; `Topics` is there already."""
    contracts = get_contracts()
    arguments = encode_values(
        "(address,address,address,uint256)", (contracts.topics, sender.address, sender.address, 0)
    )
    receipt = create(sender, "FlightBoard", arguments, "board")
    topic = receipt.get_event(contracts.topics, TopicCreated).topic
    return Scene(sender, contracts, receipt.contract_address or b"", topic)


def invite(scene: Scene) -> Iterator[Guest]:
    """Deploy and subscribe everybody."""
    arguments = encode_values("(address,bytes32)", (scene.contracts.topics, scene.topic))
    insurance = create(scene.sender, "TravelInsurance", arguments, "insurance").contract_address or b""
    index = subscribe(scene, "insurance", insurance, subscribe_to(scene.topic, TERMS, DEPOSIT_WEI))
    yield Guest("travel insurance", insurance, index, tell_insurance)
    yield invite_animal(scene, "event counter", "Counter", tell_counter)
    yield invite_animal(scene, "gas burner (hostile)", "Burner", tell_nothing)


def invite_animal(scene: Scene, title: str, name: str, tell: Callable[[RpcClient, bytes, str], str]) -> Guest:
    contract = create(scene.sender, name, b"", title).contract_address or b""
    signature = "join(address,bytes32,uint96,uint256)"
    data = encode_call(signature, scene.contracts.topics, scene.topic, TERMS.pack(), topics.APPEND)
    return Guest(title, contract, subscribe(scene, title, contract, Call(data, topics.READ_INT, DEPOSIT_WEI)), tell)


def subscribe(scene: Scene, title: str, contract: bytes, call: Call[int]) -> int:
    receipt = scene.sender.send(ask(contract, call), f"subscribe {title}")
    return receipt.get_event(scene.contracts.topics, Subscribed).index


def report(scene: Scene, flight: str, delay: int) -> Receipt:
    """Publish through the flight board."""
    data = encode_call("report(string,uint64)", flight, delay)
    price = scene.sender.get_fees().expected
    gas_limit = quote_gas(scene.sender.rpc, scene.contracts, scene.topic, len(data), price)
    return scene.sender.send(Request(scene.board, data, gas_limit=gas_limit), f"report {flight}")


def get_deposits(scene: Scene, guests: list[Guest]) -> list[int]:
    calls = [lens.get_subscription(scene.topic, guest.index) for guest in guests]
    return [read(scene.sender.rpc, scene.contracts.lens, call).deposit_gwei for call in calls]


@dataclass(frozen=True, slots=True)
class Performance:
    """One publication and what it did to everybody."""

    sent_at: float
    receipt: Receipt
    served: list[Served]


def perform(scene: Scene, guests: list[Guest], flight: str, delay: int) -> Performance:
    before = get_deposits(scene, guests)
    sent_at = time.monotonic()
    receipt = report(scene, flight, delay)
    after = get_deposits(scene, guests)
    outcomes = receipt.get_event(scene.contracts.topics, Delivered).by_index()
    says = [guest.tell(scene.sender.rpc, guest.contract, flight) for guest in guests]
    served = [
        Served(guest.title, outcomes[guest.index], says[at], before[at] - after[at]) for at, guest in enumerate(guests)
    ]
    return Performance(sent_at, receipt, served)
