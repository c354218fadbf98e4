"""What the commands of exchanges and of queues share: the contract, ids, and a message's fate in words."""

from collections.abc import Iterator
from contextlib import contextmanager

import click
from click.types import FuncParamType

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.connection import Settings, connect, open_sender
from proofcast.cli.output import format_table
from proofcast.cli.topic.sending import describe_receipt
from proofcast.cli.values import WORD_FORM, parse_address, refuse, require_text
from proofcast.errors import InvalidRequest, Reason
from proofcast.onchain.abi import format_value
from proofcast.onchain.exchange_events import Handed, Held, Overflowed, Returned, Routed
from proofcast.onchain.io.artefacts import get_exchanges
from proofcast.onchain.io.exchanges import find_events
from proofcast.onchain.io.reading import has_code
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.io.sender import Sender
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.topics import compute_topic

TO = click.option("--to", type=FuncParamType(parse_address), help="Who is paid; else your own account.")


def parse_id(text: str) -> bytes:
    """An exchange or queue: its id, or its owner's address, a slash and its name."""
    if WORD_FORM.fullmatch(text):
        return bytes.fromhex(text[2:])
    owner, slash, name = text.partition("/")
    if not slash or not name:
        hint = "write its id (0x and 64 hexadecimal digits), or its owner's address, a `/` and its name"
        raise refuse(f"`{text}` names no exchange or queue", hint)
    return compute_topic(parse_address(owner), require_text(name))


ID = FuncParamType(parse_id)
ID.name = "id"


def require_exchanges(rpc: RpcClient, topics: bytes) -> bytes:
    contract = get_exchanges(topics)
    if not has_code(rpc, contract, "latest"):
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"there is no `Exchanges` at `{format_value(contract)}` on this chain",
            hint="`proofcast exchange deploy` puts it there, once for everybody",
        )
    return contract


@contextmanager
def read_exchanges(settings: Settings) -> Iterator[tuple[RpcClient, bytes]]:
    with connect(settings) as connection:
        yield connection.rpc, require_exchanges(connection.rpc, connection.contracts.topics)


@contextmanager
def send_to_exchanges(settings: Settings) -> Iterator[tuple[Sender, bytes]]:
    with open_sender(settings) as (sender, contracts):
        yield sender, require_exchanges(sender.rpc, contracts.topics)


def describe_fate(receipt: Receipt, contract: bytes) -> dict[str, object]:
    """What a transaction did with messages."""
    return {
        "messages": list(find_events(receipt, contract, Routed)),
        "delivered": list(find_events(receipt, contract, Handed)),
        "held": list(find_events(receipt, contract, Held)),
        "overflowed": list(find_events(receipt, contract, Overflowed)),
        "returned": list(find_events(receipt, contract, Returned)),
        **describe_receipt(receipt),
    }


def format_fate(receipt: Receipt, contract: bytes) -> str:
    handed = {(page.queue, page.number): page for page in find_events(receipt, contract, Handed)}
    waiting = {(held.queue, held.number) for held in find_events(receipt, contract, Held)} - handed.keys()
    rows = [
        *((format_value(queue), str(number), format_outcomes(page)) for (queue, number), page in handed.items()),
        *((format_value(queue), str(number), "held") for queue, number in sorted(waiting)),
        *(
            (format_value(full.queue), "", "not taken: it is full")
            for full in find_events(receipt, contract, Overflowed)
        ),
    ]
    lines = [format_table([("queue", "number", "what became of it"), *rows])] if rows else ["no queue got it"]
    lines += [f"{back.value_wei} wei came back" for back in find_events(receipt, contract, Returned)]
    return "\n".join(lines)


def format_outcomes(handed: Handed) -> str:
    counts = {outcome: handed.outcomes.count(outcome) for outcome in handed.outcomes if outcome is not Outcome.NONE}
    words = [f"{count} {outcome.words}" for outcome, count in counts.items()]
    words += [f"{handed.remaining} left for `proofcast queue release`"] if handed.remaining else []
    return ", ".join(words) or "nobody is subscribed"
