"""What exchanges and queues cost on a chain, beside the DPS reference on the same work.

Gas is the receipt's `gasUsed` on anvil, every transaction cold, payload 64 characters. A quiet subscriber does nothing
when it is called, so that the figure is the contract's own; a storing one keeps the whole message in fresh slots.
Messages reach their queues through one exchange with 7 to 1,000 bindings, of which always 3 match.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from bench.gasbed import FULL_GAS, PAYLOAD, GasBed, get_gas
from bench.report import RESULTS, Row, write_report
from proofcast.chain.io.rpc import Json, RpcClient
from proofcast.onchain import exchanges, queues
from proofcast.onchain.abi import Call, encode_call, encode_values
from proofcast.onchain.io.artefacts import load_artefact
from proofcast.onchain.io.devchain import DevChainOptions, run_dev_chain
from proofcast.onchain.queues import Condition, QueueTerms
from proofcast.onchain.topics import compute_topic
from proofcast.routing.route import encode_expression_key

SIZES = (7, 10, 30, 100, 300, 1_000)
"""Bindings of the exchange."""
OPEN = QueueTerms(open_binding=True, open_subscribing=True, open_value=True)
EXPRESSION = "wanted-[a-c]"


@dataclass(slots=True)
class ExchangeBed:
    """One account that owns an exchange, its queues and everything else."""

    bed: GasBed
    contract: str
    owner: bytes
    deploy_gas: int

    def call(self, call: Call[object] | Call[bytes] | Call[int] | Call[None] | Call[bool]) -> int:
        """Send a call; what it cost."""
        return get_gas(self.send(call))

    def send(self, call: Call[object] | Call[bytes] | Call[int] | Call[None] | Call[bool]) -> Json:
        return self.bed.send(self.contract, call.data, call.value)

    def add_queue(self, exchange: bytes, name: str, key: str, terms: QueueTerms = OPEN) -> tuple[bytes, int]:
        """A queue bound to an exchange, and what binding cost."""
        self.call(queues.create_queue(name, terms))
        queue = compute_topic(self.owner, name)
        return queue, self.call(exchanges.request_binding(exchange, queue, key))

    def add_subscriber(self, queue: bytes, name: str) -> int:
        """A subscriber of the pack; what subscribing cost."""
        created = self.bed.send(None, load_artefact(name).creation_code)["contractAddress"]
        data = encode_call("subscribe(address,bytes32)", bytes.fromhex(self.contract[2:]), queue)
        return get_gas(self.bed.send(created, data))

    def add_exchange(self, name: str) -> tuple[bytes, int]:
        return compute_topic(self.owner, name), self.call(exchanges.create_exchange(name))

    def publish(self, exchange: bytes, key: bytes) -> int:
        return self.call(exchanges.publish(exchange, key, PAYLOAD))


@contextmanager
def open_bed() -> Iterator[ExchangeBed]:
    options = DevChainOptions(tx_gas_limit=True, gas_limit=2 * FULL_GAS)
    with run_dev_chain(options) as chain, RpcClient(chain.url) as rpc:
        bed = GasBed(rpc, rpc.call("eth_accounts")[0])
        code = load_artefact("Exchanges").creation_code + encode_values("(address)", (bytes(20),))
        created = bed.send(None, code)
        yield ExchangeBed(bed, created["contractAddress"], bytes.fromhex(bed.sender[2:]), get_gas(created))


def measure_edges(bed: ExchangeBed) -> list[Row]:
    exchange, create_gas = bed.add_exchange("edges")
    queue, bind_gas = bed.add_queue(exchange, "edges", "key")
    subscribe_gas = bed.add_subscriber(queue, "QuietListener")
    return [
        count("deploy `Exchanges`", bed.deploy_gas),
        count("create an exchange", create_gas),
        count("bind a queue", bind_gas),
        count("subscribe to a queue, by a contract", subscribe_gas),
    ]


def measure_deliveries(bed: ExchangeBed) -> list[Row]:
    exchange, _ = bed.add_exchange("deliveries")
    for number in range(3):
        queue, _ = bed.add_queue(exchange, f"quiet-{number}", f"quiet-{number}")
        bed.add_subscriber(queue, "QuietListener")
    direct, fanout = bed.publish(exchange, b"quiet-0"), bed.publish(exchange, b"*")
    storing, _ = bed.add_queue(exchange, "storing", "storing")
    bed.add_subscriber(storing, "Listener")
    return [
        lower("direct, 1 queue, 1 quiet subscriber", direct, 120_000, "reference 291,533"),
        lower("fanout, 3 queues with 1 quiet subscriber each", fanout, 160_000, "reference 369,285"),
        count("direct, 1 queue, 1 subscriber that stores all of it", bed.publish(exchange, b"storing")),
        *measure_holding(bed, exchange),
    ]


def measure_holding(bed: ExchangeBed, exchange: bytes) -> list[Row]:
    later = replace(OPEN, condition=Condition.TIME)
    queue, _ = bed.add_queue(exchange, "later", "later", later)
    bed.add_subscriber(queue, "QuietListener")
    return [count("direct, 1 queue that holds the message", bed.publish(exchange, b"later"))]


def measure_bindings(bed: ExchangeBed) -> dict[str, list[int]]:
    """Gas of a message to 3 queues by each kind of key, at each number of bindings."""
    exchange, _ = bed.add_exchange("bindings")
    for name in "abc":
        queue, _ = bed.add_queue(exchange, f"wanted-{name}", f"wanted-{name}")
        bed.call(exchanges.request_binding(exchange, queue, "shared"))
        bed.add_subscriber(queue, "QuietListener")
    other, _ = bed.add_queue(exchange, "other", "other")
    keys = {"direct": b"shared", "wildcard": b"wanted-*", "expression": encode_expression_key(EXPRESSION)}
    gas: dict[str, list[int]] = {name: [] for name in keys}
    bound = SIZES[0]
    for size in SIZES:
        for number in range(bound, size):
            bed.call(exchanges.request_binding(exchange, other, f"other-{number}"))
        bound = max(bound, size)
        for name, key in keys.items():
            gas[name].append(bed.publish(exchange, key))
    return gas


def draw(gas: dict[str, list[int]]) -> None:
    figure = Figure(figsize=(6, 3.6))
    axes = figure.subplots()
    for name, costs in gas.items():
        axes.plot(SIZES, costs, "o-", label=name)
    axes.axhline(FULL_GAS, ls="--", lw=0.8, color="grey", label="a transaction's limit")
    axes.set(xscale="log", yscale="log", xlabel="bindings of the exchange, 3 of which match", ylabel="gas")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "exchanges.svg")


def measure() -> list[Row]:
    with open_bed() as bed:
        rows = measure_edges(bed) + measure_deliveries(bed)
        gas = measure_bindings(bed)
    draw(gas)
    growth = gas["direct"][-1] - gas["direct"][0]
    rows.append(lower("direct to 3, 1,000 bindings: more gas than with few", growth, 100, "constant"))
    rows += [count(f"{name} to 3, 1,000 bindings", costs[-1]) for name, costs in gas.items()]
    return rows


def lower(metric: str, value: float, bound: float, anchor: str) -> Row:
    return Row(metric, value, "gas", bound, "lower", anchor)


def count(metric: str, value: float) -> Row:
    return Row(metric, value, "gas", None, "lower", "reported")


if __name__ == "__main__":
    sys.exit(write_report("exchanges", measure()))
