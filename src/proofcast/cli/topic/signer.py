"""Signed publications: a signer needs no ether and no node, and anybody may relay what it signed."""

import json
import os
import time
from pathlib import Path

import click

from proofcast.cli.connection import Settings, connect, open_sender, read_password
from proofcast.cli.output import emit, encode_json
from proofcast.cli.topic.publisher import read_file, read_payload
from proofcast.cli.topic.sending import describe_delivery, describe_receipt, format_delivery
from proofcast.cli.values import ADDRESS, KEY, TOPIC, parse_address, parse_hex
from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Reason
from proofcast.onchain import lens, topics
from proofcast.onchain.abi import NOBODY
from proofcast.onchain.events import Published
from proofcast.onchain.io.keys import load_account
from proofcast.onchain.io.publishing import relay_publication
from proofcast.onchain.io.reading import read, require_contract
from proofcast.onchain.signed import Publication, get_topic_id, make_typed_data

VALID_S = 3_600


@click.command()
@click.argument("publisher", type=ADDRESS)
@click.argument("payload", required=False)
@click.option("--hex", "as_hex", help="Payload as hexadecimal digits.")
@click.option("--file", type=click.Path(path_type=Path), help="Payload from a file; `-` for standard input.")
@click.option("--key", type=KEY, help="Routing key: 32 bytes as hex, or a text to be hashed.")
@click.option("--sequence", type=int, help="Number the event must get; else the next.")
@click.option("--topic", type=TOPIC, help="Topic of the publisher contract; else the node is asked.")
@click.option(
    "--valid-for", type=int, default=VALID_S, show_default=True, help="Seconds within which it must be relayed."
)
@click.option("--payee", type=ADDRESS, help="Who is credited; else whoever relays it.")
@click.pass_obj
def sign(
    settings: Settings,
    publisher: bytes,
    payload: str | None,
    as_hex: str | None,
    file: Path | None,
    key: bytes | None,
    sequence: int | None,
    topic: bytes | None,
    valid_for: int,
    payee: bytes | None,
) -> None:
    """Sign PAYLOAD for the contract PUBLISHER and print the publication.

    With --chain-id, --topic and --sequence no node is needed.
    """
    account = load_account(settings.keystore, read_password(settings), os.environ)
    content = read_payload(payload, as_hex, file)
    chain_id, topic, sequence = complete(settings, publisher, topic, sequence)
    deadline = int(time.time()) + valid_for
    publication = Publication(
        chain_id, publisher, topic, sequence, content, deadline, key or topics.NO_KEY, payee or NOBODY
    )
    signature = bytes(account.sign_typed_data(*make_typed_data(publication)).signature)
    click.echo(encode_publication(publication, signature))


def complete(settings: Settings, publisher: bytes, topic: bytes | None, sequence: int | None) -> tuple[int, bytes, int]:
    """What the user left to the node to say."""
    if settings.chain_id is not None and topic is not None and sequence is not None:
        return settings.chain_id, topic, sequence
    with connect(settings) as connection:
        require_contract(connection.rpc, publisher, "SignedPublisher")
        topic = topic or read(connection.rpc, publisher, get_topic_id())
        last = read(connection.rpc, connection.contracts.lens, lens.get_topic(topic)).sequence
        return connection.chain_id, topic, last + 1 if sequence is None else sequence


def encode_publication(publication: Publication, signature: bytes) -> str:
    shown = encode_json(publication)
    assert isinstance(shown, dict)
    payload, signed = "0x" + publication.payload.hex(), "0x" + signature.hex()
    return json.dumps(shown | {"payload": payload, "signature": signed}, indent=2)


def parse_publication(text: bytes) -> tuple[Publication, bytes]:
    try:
        given = json.loads(text)
        publication = Publication(
            chain_id=int(given["chain_id"]),
            contract=parse_address(given["contract"]),
            topic=parse_hex(given["topic"]),
            sequence=int(given["sequence"]),
            payload=parse_hex(given["payload"]),
            deadline=int(given["deadline"]),
            key=parse_hex(given["key"]),
            payee=parse_address(given["payee"]),
        )
        return publication, parse_hex(given["signature"])
    except (ValueError, TypeError, KeyError, AttributeError, ProofcastError) as error:
        raise InvalidInput(
            Reason.MALFORMED,
            "the file holds no signed publication",
            hint="it must be the output of `proofcast topic sign`",
        ) from error


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def relay(settings: Settings, file: Path) -> None:
    """Bring the signed publication in FILE (`-` for standard input) to the chain; the first copy is paid."""
    publication, signature = parse_publication(read_file(file))
    with open_sender(settings) as (sender, contracts):
        require_publication_chain(publication, sender.chain_id)
        require_contract(sender.rpc, publication.contract, "SignedPublisher")
        receipt = relay_publication(sender, contracts, publication, signature, idempotency_key=settings.get_key())
    published = next(receipt.find_events(contracts.topics, Published), None)
    if published:
        record = {"published": True, **describe_delivery(receipt, contracts.topics)}
        emit(settings.as_json, record, format_delivery(receipt, contracts.topics))
    else:
        record = {"published": False, "sequence": publication.sequence, **describe_receipt(receipt)}
        emit(settings.as_json, record, f"event {publication.sequence} was published before; this copy notified nobody")


def require_publication_chain(publication: Publication, chain_id: int) -> None:
    if publication.chain_id != chain_id:
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"the publication is for chain `{publication.chain_id}` but the node is on chain `{chain_id}`",
            hint="relay it by a node of its own chain",
            have=chain_id,
            need=publication.chain_id,
        )
