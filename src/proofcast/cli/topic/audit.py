"""`proofcast topic audit`: that no event of a topic is missing, up to a block you trust."""

from dataclasses import dataclass

import click

from proofcast.chain.io.answers import get_field, get_list, parse_bytes
from proofcast.chain.io.rpc import RpcClient
from proofcast.chain.io.source import open_source
from proofcast.chain.segment import BlockId
from proofcast.chain.state import compute_mapping_place, verify_storage
from proofcast.chain.verify import VerifiedHeader, verify_header
from proofcast.cli.broker_options import BROKERS
from proofcast.cli.connection import Settings, connect
from proofcast.cli.output import emit, format_record
from proofcast.cli.values import TOPIC
from proofcast.client.io.http import Client
from proofcast.client.values import HASH_LENGTH, parse_hex
from proofcast.errors import InvalidInput, Reason, Unavailable
from proofcast.event import Event, Finality
from proofcast.onchain.io.reading import encode_hex

BOOKS_SLOT = 0
"""Of the contract's storage: a mapping from topics, the first word of each being its state."""
SEQUENCE_MASK = (1 << 48) - 1


@dataclass(frozen=True, slots=True)
class Audit:
    """What was proven."""

    topic: bytes
    events: int
    block: BlockId
    trusted: bool
    """Was the block named by you? Otherwise the node named it."""


@click.command()
@click.argument("topic", type=TOPIC)
@BROKERS
@click.option(
    "--trust", "trusted", default="", metavar="HASH", help="Hash of a block that you trust; else the node's newest."
)
@click.pass_obj
def audit(settings: Settings, topic: bytes, brokers: tuple[str, ...], trusted: str) -> None:
    """Check that a broker has every event of TOPIC, up to a block.

    Every event is verified, and each is the next one after the one before. How many there are is read from the
    contract's storage, with a proof from the node that is checked against the block's header.
    """
    with connect(settings) as connection, Client(brokers, topics=encode_hex(connection.contracts.topics)) as client:
        header = find_header(settings.rpc_url, parse_hex("block hash", trusted, HASH_LENGTH))
        count = prove_count(connection.rpc, connection.contracts.topics, topic, header)
        events = read_events(client, topic, header)
    verify_complete(events, count, header)
    found = Audit(topic, count, header.link.id, bool(trusted))
    emit(settings.as_json, found, format_record(describe(found)))


def find_header(rpc_url: str, trusted: bytes) -> VerifiedHeader:
    source = open_source(rpc_url)
    if not trusted:
        head = source.get_head(Finality.LATEST)
        if head is None:
            raise Unavailable(Reason.NOT_YET, "the node has no block yet", hint="try again later")
        trusted = head.hash
    return verify_header(source.get_block_by_hash(trusted).header, trusted)


def prove_count(rpc: RpcClient, contract: bytes, topic: bytes, header: VerifiedHeader) -> int:
    """How many events the topic has at the block, as its storage says."""
    place = compute_mapping_place(topic, BOOKS_SLOT)
    found = rpc.call("eth_getProof", encode_hex(contract), [encode_hex(place)], hex(header.header.number))
    words = get_list(get_field(found, "storageProof"), "storage proofs")
    account = [parse_bytes(node) for node in get_list(get_field(found, "accountProof"), "account proof")]
    storage = [parse_bytes(node) for word in words for node in get_list(get_field(word, "proof"), "storage proof")]
    return verify_storage(header.header, contract, place, account, storage) & SEQUENCE_MASK


def read_events(client: Client, topic: bytes, header: VerifiedHeader) -> list[Event]:
    """Those up to the block, each verified to be an ancestor's."""
    subscription = client.subscribe(encode_hex(topic), start="oldest", trust=encode_hex(header.hash))
    events = subscription.read_history()
    return [event for event in events if event.position.block_number <= header.header.number]


def verify_complete(events: list[Event], count: int, header: VerifiedHeader) -> None:
    """The SDK has refused any gap between them; so the first and the last are all that can be wrong."""
    first, last = (events[0].sequence, events[-1].sequence) if events else (1, 0)
    if (first, last) != (1, count):
        raise InvalidInput(
            Reason.DISAGREES,
            f"the broker has events `{first}` to `{last}`, at block `{header.link.id}` the topic has `1` to `{count}`",
            hint="ask a broker that began before the topic's first event, or that has followed up to this block",
        )


def describe(found: Audit) -> dict[str, str]:
    source = "that you trust" if found.trusted else "that the node called its newest; name one you trust with --trust"
    return {
        "topic": encode_hex(found.topic),
        "events": f"1 to {found.events}, each verified, none missing" if found.events else "none, and none is missing",
        "proven at": f"block {found.block}, {source}",
    }
