"""A playground: a development chain with our contracts on it, subscriber contracts to put there, an exchange."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from proofcast.chain.io.rpc import RpcClient
from proofcast.onchain import exchanges, queues, topics
from proofcast.onchain.abi import Call, encode_call, encode_values
from proofcast.onchain.deployment import Contracts
from proofcast.onchain.events import Subscribed
from proofcast.onchain.exchange_events import ExchangeCreated, QueueCreated
from proofcast.onchain.io.artefacts import load_artefact
from proofcast.onchain.io.devchain import DEFAULT_OPTIONS, DevChain, DevChainOptions, run_dev_chain
from proofcast.onchain.io.exchanges import deploy_exchanges, find_next, get_event
from proofcast.onchain.io.fees import FeePolicy
from proofcast.onchain.io.keys import parse_key
from proofcast.onchain.io.publishing import deploy_contracts
from proofcast.onchain.io.reading import encode_hex
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.io.sender import Sender
from proofcast.onchain.policy import Terms
from proofcast.onchain.queues import QueueTerms
from proofcast.onchain.request import Request, ask
from proofcast.routing.route import encode_routing_key

Result = TypeVar("Result")
TERMS = Terms(callback_gas=100_000, max_price_mwei=1_000_000, max_share_gwei=100_000_000)
DEPOSIT_WEI = 10**17
OPEN = QueueTerms(open_binding=True, open_subscribing=True, open_value=True)
FEES = FeePolicy(wait_s_max=30.0)
"""A chain that mines at once keeps nobody waiting; a test that waits has failed."""


@dataclass(slots=True)
class Playground:
    chain: DevChain
    rpc: RpcClient
    contracts: Contracts
    folder: Path
    """For the senders' journals; a fresh one wherever the chain is set back."""
    calls: int = 0

    @property
    def topics(self) -> bytes:
        return self.contracts.topics

    @property
    def lens(self) -> bytes:
        return self.contracts.lens

    def open_sender(self, account: int = 0, fees: FeePolicy = FEES) -> Sender:
        return Sender(self.rpc, parse_key(self.chain.accounts[account].private_key), self.folder, fees=fees)

    def send(self, request: Request, account: int = 0) -> Receipt:
        """Have something done; every call is another one."""
        self.calls += 1
        return self.open_sender(account).send(request, f"playground {self.calls}")

    def create(self, name: str, types: str = "()", *arguments: object) -> bytes:
        """Deploy a contract of the package."""
        code = load_artefact(name).creation_code + encode_values(types, arguments)
        created = self.send(Request(None, code)).contract_address
        assert created
        return created

    def join(self, contract: bytes, topic: bytes, deposit_wei: int = DEPOSIT_WEI, terms: Terms = TERMS) -> int:
        """Subscribe an animal of the zoo; its index."""
        data = encode_call(
            "join(address,bytes32,uint96,uint256)", self.contracts.topics, topic, terms.pack(), topics.APPEND
        )
        receipt = self.send(ask(contract, Call(data, topics.READ_INT, deposit_wei)))
        return receipt.get_event(self.topics, Subscribed).index

    def set_balance(self, account: bytes, wei: int) -> None:
        self.rpc.call("anvil_setBalance", encode_hex(account), hex(wei))


@dataclass(frozen=True, slots=True)
class Switchboard:
    """An exchange of the first account; queues to bind to it, contracts that listen to them."""

    playground: Playground
    contract: bytes
    exchange: bytes

    @property
    def rpc(self) -> RpcClient:
        return self.playground.rpc

    def send(self, call: Call[Result], account: int = 0) -> Receipt:
        return self.playground.send(ask(self.contract, call), account)

    def add_queue(self, key: str, terms: QueueTerms = OPEN) -> bytes:
        """A queue called like the key by which it is bound."""
        queue = get_event(self.send(queues.create_queue(key, terms)), self.contract, QueueCreated).queue
        self.send(exchanges.request_binding(self.exchange, queue, key))
        return queue

    def add_listener(self, queue: bytes) -> bytes:
        listener = self.playground.create("Listener")
        data = encode_call("subscribe(address,bytes32)", self.contract, queue)
        self.playground.send(ask(listener, Call(data, bytes)))
        return listener

    def publish(self, key: str, value_wei: int = 0, payload: bytes = b"payload") -> Receipt:
        return self.send(exchanges.publish(self.exchange, encode_routing_key(key), payload, value_wei))

    def settle(self, queue: bytes) -> Receipt:
        """Release the next message."""
        message = find_next(self.rpc, self.contract, queue)
        payee = self.playground.chain.accounts[0].address
        return self.send(queues.release(queue, message.header, message.key, message.payload, payee))


def open_switchboard(playground: Playground, name: str = "exchange") -> Switchboard:
    contract = deploy_exchanges(playground.open_sender(), playground.topics)
    created = playground.send(ask(contract, exchanges.create_exchange(name)))
    return Switchboard(playground, contract, get_event(created, contract, ExchangeCreated).exchange)


@contextmanager
def run_playground(folder: Path, options: DevChainOptions = DEFAULT_OPTIONS) -> Iterator[Playground]:
    with run_dev_chain(options) as chain, RpcClient(chain.url) as rpc:
        deployer = Sender(rpc, parse_key(chain.accounts[-1].private_key), folder)
        yield Playground(chain, rpc, deploy_contracts(deployer), folder)


@contextmanager
def rolled_back(playground: Playground, folder: Path) -> Iterator[Playground]:
    """The playground, set back to what it was at the end."""
    snapshot = playground.rpc.call("evm_snapshot")
    try:
        yield Playground(playground.chain, playground.rpc, playground.contracts, folder)
    finally:
        playground.rpc.call("evm_revert", snapshot)
