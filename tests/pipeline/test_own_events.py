"""What our own contracts logged on a real node: verified, and decoded as workers decode it."""

import json
from pathlib import Path

import pytest

from proofcast.chain.io.fetch import fetch_blocks, link_range
from proofcast.chain.io.source import open_source
from proofcast.chain.profile import get_profile
from proofcast.event import Finality
from proofcast.onchain import exchanges, topics
from proofcast.onchain.events import TopicCreated
from proofcast.onchain.io.publishing import publish
from proofcast.onchain.request import ask
from proofcast.pipeline.decoding import decode_all
from proofcast.pipeline.io.abis import get_own_abi
from proofcast.pipeline.io.reading import apply_block
from proofcast.pipeline.matching import describe
from proofcast.pipeline.rows import build_table
from proofcast.pipeline.schemas import Table
from proofcast.routing.predicate import matches, parse_predicate
from proofcast.routing.route import encode_expression_key
from proofcast.testing.onchain import Playground, open_switchboard, run_playground

PAYLOAD = b"LH454 late"


def read_events(playground: Playground) -> list[dict[str, str]]:
    """Name and arguments of every event, in the chain's order."""
    source = open_source(playground.chain.url)
    head = source.get_head(Finality.LATEST)
    assert head
    profile = get_profile(source.get_chain_id())
    (segment,) = link_range(source, 1, head.number, length=head.number)
    steps = [apply_block(0, profile.chain_id, block) for block in fetch_blocks(source, segment, profile)]
    rows = decode_all(build_table(steps, Table.LOGS), [get_own_abi()]).to_pylist()
    assert not any(row["fault"] for row in rows), rows
    return [{"event": row["name"], **dict(row["arguments"])} for row in rows]


@pytest.mark.needs("anvil")
@pytest.mark.slow
def test_publications_messages_and_outcomes_are_decoded(tmp_path: Path) -> None:
    with run_playground(tmp_path) as playground:
        sender = playground.open_sender()
        created = sender.send(ask(playground.topics, topics.create("flights")), "create")
        topic = created.get_event(playground.topics, TopicCreated).topic
        index = playground.join(playground.create("Counter"), topic)
        publish(sender, playground.contracts, topic, PAYLOAD, idempotency_key="p", payee=sender.address)
        board = open_switchboard(playground, "colours")
        queue = board.add_queue("colour-blue")
        board.add_listener(queue)
        board.publish("colour-bl*", payload=PAYLOAD)
        board.send(exchanges.publish(board.exchange, encode_expression_key("a|b"), b""))
        said = read_events(playground)
        events = {event["event"]: event for event in reversed(said)}
    assert {"TopicCreated", "Subscribed", "Published", "Delivered"} <= events.keys()
    assert {events[name]["topic"] for name in ("TopicCreated", "Published", "Delivered")} == {f"0x{topic.hex()}"}
    assert events["Published"]["payload"] == f"0x{PAYLOAD.hex()}"
    assert json.loads(events["Delivered"]["outcomes"])[index] == "delivered"
    assert {events[name]["exchange"] for name in ("ExchangeCreated", "Routed")} == {f"0x{board.exchange.hex()}"}
    assert [event["key"] for event in said if event["event"] == "Routed"] == [
        "colour-bl*",
        f"0x{encode_expression_key('a|b').hex()}",
    ]
    assert events["Routed"]["payload"] == f"0x{PAYLOAD.hex()}"
    assert events["Handed"]["queue"] == f"0x{queue.hex()}"
    assert json.loads(events["Handed"]["outcomes"]) == ["delivered"]
    assert matches(parse_predicate("Routed T/key P colour-"), describe("Routed", events["Routed"]))
