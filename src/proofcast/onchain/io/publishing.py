"""The steps that need more than one call: deploy, publish, deliver the next page, relay."""

from proofcast.chain.io.answers import get_field, parse_quantity
from proofcast.chain.io.rpc import RpcClient
from proofcast.errors import InvalidRequest, Reason
from proofcast.onchain import lens, topics
from proofcast.onchain.abi import format_value
from proofcast.onchain.deployment import DEPLOYER, Contracts, compute_address, deploy
from proofcast.onchain.events import Published
from proofcast.onchain.io.artefacts import get_contracts, get_lens_code, load_artefact
from proofcast.onchain.io.reading import find_creation_block, find_logs, has_code, read
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.io.sender import Sender
from proofcast.onchain.io.simulation import TRANSACTION_GAS_MAX
from proofcast.onchain.request import Request, ask, compute_intent
from proofcast.onchain.signed import Publication, get_topic_id, relay

GAS_MARGIN_PERCENT = 5
"""On top of a quote: a subscriber may join between the quote and the block."""
RELAY_GAS = 150_000
"""A signature's calldata and its check, by ERC-1271 too, beyond what the topic quotes for its publisher."""


def deploy_contracts(sender: Sender, topics_: bytes | None = None) -> Contracts:
    """Put `Topics` and its lens at their addresses, unless they are there."""
    contracts = get_contracts(topics_)
    if topics_ is None:
        deploy_code(sender, load_artefact("Topics").creation_code)
    deploy_code(sender, get_lens_code(contracts.topics))
    return contracts


def deploy_code(sender: Sender, code: bytes) -> None:
    address = compute_address(code)
    if has_code(sender.rpc, address, "latest"):
        return
    if not has_code(sender.rpc, DEPLOYER, "latest"):
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"chain `{sender.chain_id}` lacks the deployment proxy `{format_value(DEPLOYER)}`",
            hint="deploy the proxy first; its one transaction is the same on every chain",
        )
    sender.send(ask(DEPLOYER, deploy(code)), f"deploy {format_value(address)}")


def quote_gas(
    rpc: RpcClient, contracts: Contracts, topic: bytes, payload_length: int, price: int, extra: int = 0
) -> int:
    """The gas limit of a publish; an estimate by the node would follow whatever branch little gas takes."""
    quote = read(rpc, contracts.lens, lens.quote_publish(topic, payload_length, price))
    block_limit = parse_quantity(get_field(rpc.call("eth_getBlockByNumber", "latest", False), "gasLimit"))
    wanted = quote.gas_limit * (100 + GAS_MARGIN_PERCENT) // 100 + extra
    return min(wanted, TRANSACTION_GAS_MAX, block_limit)


def publish(
    sender: Sender,
    contracts: Contracts,
    topic: bytes,
    payload: bytes,
    *,
    idempotency_key: str,
    key: bytes = topics.NO_KEY,
    expected: int = 0,
    payee: bytes,
) -> Receipt:
    call = topics.publish(topic, payload, key=key, expected=expected, payee=payee)

    def plan() -> Request:
        price = sender.get_fees().expected
        return ask(contracts.topics, call, quote_gas(sender.rpc, contracts, topic, len(payload), price))

    return sender.send_planned(plan, ask(contracts.topics, call).compute_intent(), idempotency_key)


def deliver(sender: Sender, contracts: Contracts, topic: bytes, *, idempotency_key: str, payee: bytes) -> Receipt:
    """Deliver the next page of a pending event, whose key and payload are in its log."""

    def plan() -> Request:
        pending = read(sender.rpc, contracts.lens, lens.get_pending(topic))
        event = find_published(sender.rpc, contracts.topics, topic, pending.sequence)
        gas_limit = quote_gas(sender.rpc, contracts, topic, len(event.payload), sender.get_fees().expected)
        return ask(contracts.topics, topics.deliver(topic, event.key, event.payload, payee), gas_limit)

    return sender.send_planned(plan, compute_intent("deliver", contracts.topics, topic, payee), idempotency_key)


def find_published(rpc: RpcClient, contract: bytes, topic: bytes, sequence: int) -> Published:
    """An event by its number, from the log of its publication."""
    first = find_creation_block(rpc, contract)
    for logged in find_logs(rpc, contract, Published, topic, sequence.to_bytes(32), first=first):
        if isinstance(logged.event, Published):
            return logged.event
    raise InvalidRequest(
        Reason.BAD_ARGUMENT,
        f"the node knows no event `{sequence}` of the topic `{format_value(topic)}`",
        hint="ask a node that keeps the logs of that time",
    )


def relay_publication(
    sender: Sender, contracts: Contracts, publication: Publication, signature: bytes, *, idempotency_key: str
) -> Receipt:
    call = relay(publication, signature)

    def plan() -> Request:
        topic = read(sender.rpc, publication.contract, get_topic_id())
        price = sender.get_fees().expected
        gas_limit = quote_gas(sender.rpc, contracts, topic, len(publication.payload), price, RELAY_GAS)
        return ask(publication.contract, call, gas_limit)

    return sender.send_planned(plan, ask(publication.contract, call).compute_intent(), idempotency_key)
