"""What a publisher does: publish by a routing key."""

from pathlib import Path

import click

from proofcast.cli.connection import Settings
from proofcast.cli.exchange.session import (
    ID,
    describe_fate,
    format_fate,
    send_to_exchanges,
)
from proofcast.cli.output import emit
from proofcast.cli.topic.publisher import read_payload
from proofcast.cli.values import AMOUNT, require_text
from proofcast.onchain import exchanges
from proofcast.onchain.request import ask
from proofcast.routing.route import encode_expression_key, encode_routing_key


@click.command()
@click.argument("exchange_id", metavar="EXCHANGE", type=ID)
@click.argument("key")
@click.argument("payload", required=False)
@click.option("--hex", "as_hex", help="Payload as hexadecimal digits.")
@click.option("--file", type=click.Path(path_type=Path), help="Payload from a file; `-` for standard input.")
@click.option("--regex", is_flag=True, help="KEY is a regular expression such as `colou?r-(black|white)`.")
@click.option("--value", type=AMOUNT, default="0wei", show_default=True, help="Split among those it reaches.")
@click.pass_obj
def publish(
    settings: Settings,
    exchange_id: bytes,
    key: str,
    payload: str | None,
    as_hex: str | None,
    file: Path | None,
    regex: bool,
    value: int,
) -> None:
    """Publish PAYLOAD, a text, by a routing key: `*` stands for one or more characters, `#` for one."""
    route = encode_expression_key(key) if regex else encode_routing_key(require_text(key))
    call = exchanges.publish(exchange_id, route, read_payload(payload, as_hex, file), value)
    with send_to_exchanges(settings) as (sender, contract):
        receipt = sender.send(ask(contract, call), settings.get_key())
    emit(settings.as_json, describe_fate(receipt, contract), format_fate(receipt, contract))
