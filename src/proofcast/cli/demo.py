"""`proofcast demo`: flight delays reach contracts, two of them hostile, inside the transaction that publishes them."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from eth_hash.auto import keccak

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.connection import JSON_OPTION, Settings
from proofcast.cli.output import emit, format_table, note
from proofcast.cli.values import shorten
from proofcast.onchain import lens, topics
from proofcast.onchain.abi import Call, encode_call, encode_values, format_value, reading
from proofcast.onchain.deployment import Contracts
from proofcast.onchain.events import Delivered, Subscribed, TopicCreated
from proofcast.onchain.io.artefacts import load_artefact
from proofcast.onchain.io.devchain import DevChainOptions, run_dev_chain
from proofcast.onchain.io.keys import parse_key
from proofcast.onchain.io.publishing import deploy_contracts, quote_gas
from proofcast.onchain.io.reading import read
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.io.sender import Sender
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.policy import Terms
from proofcast.onchain.request import Request, ask
from proofcast.onchain.subscriber import subscribe_to

FLIGHTS = (("LH454", 150), ("BA117", 20))
"""What is published: flight and minutes of delay; the insurance covers two hours."""
TERMS = Terms(callback_gas=100_000, max_price_mwei=100_000, max_share_gwei=10_000_000)
WEI_PER_GWEI = 10**9
DEPOSIT_WEI = 10**16
POOR_DEPOSIT_WEI = 20_000 * WEI_PER_GWEI
"""Above the topic's floor, so that it stays listed, and too little for one callback."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A subscriber of the demonstration."""

    title: str
    contract: bytes
    index: int
    tell: Callable[[RpcClient, bytes, str], str]
    """What the contract itself says it knows of a flight."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one event meant for one subscriber."""

    event: int
    transaction: bytes
    subscriber: str
    outcome: Outcome
    received: str
    paid_gwei: int


@dataclass(frozen=True, slots=True)
class Bill:
    """What one event meant for its publisher."""

    event: int
    transaction: bytes
    gas_used: int
    fee_gwei: float
    credited_gwei: int
    credited_per_fee: float


@dataclass(frozen=True, slots=True)
class Scene:
    """The contracts on their chain."""

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
    return "-"


def create(sender: Sender, name: str, arguments: bytes, key: str) -> Receipt:
    return sender.send(Request(None, load_artefact(name).creation_code + arguments), f"create {key}")


def set_scene(sender: Sender) -> Scene:
    """Deploy `Topics` and a flight board, whose oracle is the sender."""
    contracts = deploy_contracts(sender)
    arguments = encode_values(
        "(address,address,address,uint256)", (contracts.topics, sender.address, sender.address, 0)
    )
    receipt = create(sender, "FlightBoard", arguments, "board")
    topic = receipt.get_event(contracts.topics, TopicCreated).topic
    return Scene(sender, contracts, receipt.contract_address or b"", topic)


def invite(scene: Scene) -> Iterator[Guest]:
    """Deploy and subscribe everybody."""
    yield invite_insurance(scene, "travel insurance", DEPOSIT_WEI)
    yield invite_animal(scene, "event counter", "Counter", tell_counter)
    yield invite_animal(scene, "gas burner (hostile)", "Burner", tell_nothing)
    yield invite_animal(scene, "return bomb (hostile)", "ReturnBomb", tell_nothing)
    yield invite_insurance(scene, "poor insurance", POOR_DEPOSIT_WEI)


def invite_insurance(scene: Scene, title: str, deposit_wei: int) -> Guest:
    arguments = encode_values("(address,bytes32)", (scene.contracts.topics, scene.topic))
    contract = create(scene.sender, "TravelInsurance", arguments, title).contract_address or b""
    index = subscribe(scene, title, contract, subscribe_to(scene.topic, TERMS, deposit_wei))
    return Guest(title, contract, index, tell_insurance)


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


def play(scene: Scene, guests: list[Guest], flight: str, delay: int) -> tuple[list[Line], Bill]:
    """Publish one delay and see what it did to everybody."""
    before = get_deposits(scene, guests)
    receipt = report(scene, flight, delay)
    after = get_deposits(scene, guests)
    page = receipt.get_event(scene.contracts.topics, Delivered)
    outcomes, transaction = page.by_index(), receipt.transaction_hash
    told = [guest.tell(scene.sender.rpc, guest.contract, flight) for guest in guests]
    lines = [
        Line(page.sequence, transaction, guest.title, outcomes[guest.index], told[i], before[i] - after[i])
        for i, guest in enumerate(guests)
    ]
    fee = receipt.fee_wei / WEI_PER_GWEI
    return lines, Bill(
        page.sequence, transaction, receipt.gas_used, fee, page.credited_gwei, round(page.credited_gwei / fee, 4)
    )


def format_lines(lines: list[Line]) -> str:
    heading = ("event", "transaction", "subscriber", "outcome", "what it says", "paid")
    rows = [
        (
            str(line.event),
            shorten(line.transaction),
            line.subscriber,
            line.outcome.words,
            line.received,
            f"{line.paid_gwei} gwei",
        )
        for line in lines
    ]
    return format_table([heading, *rows])


def format_bills(bills: list[Bill]) -> str:
    heading = ("event", "transaction", "gas used", "fee", "credited by subscribers", "credited / fee")
    rows = [
        (
            str(bill.event),
            shorten(bill.transaction),
            str(bill.gas_used),
            f"{bill.fee_gwei:.0f} gwei",
            f"{bill.credited_gwei} gwei",
            f"{bill.credited_per_fee:.3f}",
        )
        for bill in bills
    ]
    return format_table([heading, *rows])


@click.command(params=[JSON_OPTION])
@click.pass_obj
def demo(settings: Settings) -> None:
    """Publish flight delays to contracts on a development chain, and show what everybody got and paid."""
    lines: list[Line] = []
    bills: list[Bill] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        run_dev_chain(DevChainOptions(tx_gas_limit=True)) as chain,
        RpcClient(chain.url) as rpc,
    ):
        scene = set_scene(Sender(rpc, parse_key(chain.accounts[0].private_key), Path(folder)))
        note(f"development chain {chain.chain_id}, Topics at {format_value(scene.contracts.topics)}")
        guests = list(invite(scene))
        note(f"topic flight-delays {format_value(scene.topic)} with {len(guests)} subscriber contracts")
        for flight, delay in FLIGHTS:
            note(f"publishing: {flight} is {delay} minutes late")
            played, bill = play(scene, guests, flight, delay)
            lines += played
            bills.append(bill)
    text = f"\nwhat each subscriber got\n\n{format_lines(lines)}\n\nwhat the publisher paid\n\n{format_bills(bills)}"
    emit(settings.as_json, {"deliveries": lines, "publications": bills}, text)
