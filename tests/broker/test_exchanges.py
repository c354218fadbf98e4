"""Messages of exchanges through a broker: chosen by exchange, queue and routing key, verified by the reader."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import httpx
import pytest

from proofcast.client.checking import Checker, ProvenReceipt, Wanted, verify_event
from proofcast.client.io.http import Client
from proofcast.client.lineage import Lineage
from proofcast.errors import InvalidInput
from proofcast.event import Event, Step
from proofcast.onchain import exchanges
from proofcast.onchain.io.artefacts import get_exchanges
from proofcast.onchain.queues import Condition
from proofcast.routing.route import encode_expression_key
from proofcast.testing.dashboard import Stage, run_stage
from proofcast.testing.onchain import OPEN, Switchboard, open_switchboard

pytestmark = [pytest.mark.slow, pytest.mark.needs("anvil")]

KEYS = ["colour-blue", "colour-bl*", "colour-white.dark", "*"]
HELD = replace(OPEN, condition=Condition.TIME, delay_s=1_000)


@dataclass(frozen=True, slots=True)
class World:
    stage: Stage
    board: Switchboard
    blue: bytes
    white: bytes

    def read(self, topic: str = "", **chosen: str) -> list[Event]:
        """What a verifying reader gets of the past."""
        with Client(self.stage.url) as client:
            return list(client.subscribe(topic, **{"start": "oldest", **chosen}).read_history())

    def read_keys(self, topic: str = "", **chosen: str) -> list[str]:
        return [event.key.decode() for event in self.read(topic, **chosen)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An exchange `colours` and two queues: a contract hears `colour-blue`; `colour-white` holds messages back."""
    with run_stage(tmp_path_factory.mktemp("exchanges")) as stage:
        board = open_switchboard(stage.playground, "colours")
        world = World(stage, board, board.add_queue("colour-blue"), board.add_queue("colour-white", HELD))
        board.add_listener(world.blue)
        stage.publish(stage.create_topic("colours"), b"of a topic, whose id is that of the exchange")
        for key in KEYS:
            board.publish(key, payload=key.encode())
        stage.show()
        yield world


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"topic": "exchange/0x12"}, "is no topic"),
        ({"key": "colour_blue"}, "has a `_` at character 7"),
        ({"key": "a", "contract": f"0x{'11' * 20}"}, "`contract` goes with no"),
        ({"topic": "queue/colour-blue", "start": "sequence:1"}, "needs one topic to count in"),
    ],
)
def test_what_cannot_be_chosen_is_refused(fields: dict[str, str], said: str, world: World) -> None:
    answer = httpx.get(f"{world.stage.url}/api/v1/events", params=fields)
    assert answer.status_code == 400
    assert said in answer.json()["title"]


def test_broker_cannot_give_a_message_to_another_queue_or_key(world: World) -> None:
    event = world.read("exchange/colours", key="colour-blue")[0]
    contract = get_exchanges(world.stage.playground.topics)
    answer = httpx.get(f"{world.stage.url}/api/v1/events", params={"topic": "exchange/colours"}).json()["events"][0]
    with Client(world.stage.url) as client:
        data = client.get_evidence(answer["id"])
    checker = Checker(Wanted(b"", contract), Lineage(event.position.block_hash))
    checker.receive_evidence(data)
    receipt: ProvenReceipt = checker._prove(event.position)
    honest = replace(event, trust=answer["trust"])
    verify_event(honest, receipt, Wanted(b"", contract, queue=world.blue, key="colour-b*"))
    with pytest.raises(InvalidInput, match="did not reach the queue"):
        verify_event(honest, receipt, Wanted(b"", contract, queue=world.white))
    with pytest.raises(InvalidInput, match="does not mean"):
        verify_event(honest, receipt, Wanted(b"", contract, key="colour-white"))
    with pytest.raises(InvalidInput, match="nothing that was subscribed to"):
        verify_event(honest, receipt, Wanted(world.stage.playground.topics))


def test_messages_are_events_with_their_routing_key(world: World) -> None:
    events = world.read("exchange/colours")
    assert [(event.sequence, event.key.decode(), event.payload.decode()) for event in events] == [
        (number, key, key) for number, key in enumerate(KEYS, start=1)
    ]
    assert {event.topic for event in events} == {world.board.exchange}
    assert {event.publisher for event in events} == {world.stage.playground.chain.accounts[0].address}
    assert [event.sequence for event in world.read("exchange/colours", start="sequence:3")] == [3, 4]


@pytest.mark.parametrize(
    ("topic", "key", "found"),
    [
        ("queue/colour-blue", "", [0, 1, 3]),
        ("queue/colour-white", "", [2, 3]),
        ("queue/*", "", [0, 1, 2, 3]),
        ("exchange/", "colour-black", [1, 3]),
        ("exchange/", "colour-w*.d*", [2]),
        ("", "colour-white", [2, 3]),
        ("exchange/nobody", "", []),
    ],
)
def test_queue_and_key_choose(topic: str, key: str, found: list[int], world: World) -> None:
    assert world.read_keys(topic, key=key) == [KEYS[place] for place in found]


def test_ids_name_exchange_topic_and_queue_apart(world: World) -> None:
    exchange = f"0x{world.board.exchange.hex()}"
    assert world.read_keys(f"exchange/{exchange}") == KEYS
    assert [event.payload[:10] for event in world.read(exchange)] == [b"of a topic"]
    assert [event.payload[:10] for event in world.read("colours")] == [b"of a topic"]
    assert world.read_keys(f"queue/0x{world.white.hex()}") == KEYS[2:]
    assert len(world.read()) == len(KEYS) + 1


def test_consumer_of_a_queue_pulls_and_acknowledges(world: World) -> None:
    """What a queue is elsewhere: fetched, again until it is acknowledged, then never again."""
    path = f"{world.stage.url}/api/v1/subscriptions"
    chosen = {"topic": "queue/colour-blue", "key": "colour-bl*"}
    body = {"name": "consumer", "filter": chosen, "start": "oldest"}
    assert httpx.post(path, json=body).json()["filter"] == chosen
    first = httpx.get(f"{path}/consumer/events").json()["events"]
    assert [bytes.fromhex(one["eventkey"][2:]).decode() for one in first] == [KEYS[0], KEYS[1], KEYS[3]]
    again = httpx.get(f"{path}/consumer/events?limit=1").json()
    assert again["events"][0]["repeated"] == "true"
    httpx.post(f"{path}/consumer/ack", json={"cursor": again["cursor"]}).raise_for_status()
    rest = httpx.get(f"{path}/consumer/events").json()["events"]
    assert [bytes.fromhex(one["eventkey"][2:]).decode() for one in rest] == [KEYS[1], KEYS[3]]


def test_message_is_undone_by_a_reorg(world: World) -> None:
    route = encode_expression_key("colour-(blue|green)")
    head = world.read()[-1].position.block_number
    with Client(world.stage.url) as client:
        reading = iter(client.subscribe("queue/colour-blue", key="colour-blue", start=f"block:{head + 1}"))
        world.board.send(exchanges.publish(world.board.exchange, route, b"never was"))
        world.stage.show()
        event = next(reading)
        assert (event.key, event.payload, event.step) == (route, b"never was", Step.APPLY)
        world.stage.reorganize(1)
        assert replace(next(reading), step=Step.APPLY) == event
