"""An event that does not fit one transaction is delivered page by page from what the log says."""

from pathlib import Path

import pytest

from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.onchain import lens, topics
from proofcast.onchain.events import Delivered, TopicCreated
from proofcast.onchain.io.devchain import DevChainOptions
from proofcast.onchain.io.publishing import deliver, find_published, publish, quote_gas
from proofcast.onchain.io.reading import read
from proofcast.onchain.io.simulation import TRANSACTION_GAS_MAX
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.policy import Policy, Terms
from proofcast.onchain.request import ask
from proofcast.testing.onchain import Playground, run_playground

pytestmark = pytest.mark.needs("anvil")

GREEDY = Terms(callback_gas=4_000_000, max_price_mwei=1_000_000, max_share_gwei=100_000_000)
SUBSCRIBERS = 5


SMALL_BLOCK_GAS = 8_000_000
"""Below 2^24, so that the block bounds a transaction and not EIP-7825."""


@pytest.fixture
def topic(playground: Playground) -> bytes:
    return create_greedy_topic(playground)


def create_greedy_topic(playground: Playground) -> bytes:
    """Five subscribers that reserve four million gas each: more than a transaction may bring."""
    policy = Policy(callback_gas=GREEDY.callback_gas)
    created = playground.send(ask(playground.topics, topics.create("x", policy)))
    topic = created.get_event(playground.topics, TopicCreated).topic
    burner = playground.create("Burner")
    for _ in range(SUBSCRIBERS):
        playground.join(burner, topic, terms=GREEDY)
    return topic


def test_nothing_pending_is_refused(playground: Playground, topic: bytes) -> None:
    sender = playground.open_sender()
    with pytest.raises(InvalidRequest, match="has no page to deliver"):
        deliver(sender, playground.contracts, topic, idempotency_key="d", payee=sender.address)


def test_event_that_never_was_is_refused(playground: Playground, topic: bytes) -> None:
    with pytest.raises(InvalidRequest, match="the node knows no event `9`"):
        find_published(playground.rpc, playground.topics, topic, 9)


def test_small_block_is_the_cap(tmp_path: Path) -> None:
    """13 sixteenths of what a block holds must arrive; with its limit an event goes out, and its pages follow."""
    with run_playground(tmp_path, DevChainOptions(gas_limit=SMALL_BLOCK_GAS)) as playground:
        topic = create_greedy_topic(playground)
        sender = playground.open_sender()
        assert quote_gas(playground.rpc, playground.contracts, topic, 1, 10**9) == SMALL_BLOCK_GAS
        need = SMALL_BLOCK_GAS * 13 // 16
        call = topics.publish(topic, b"x", payee=sender.address)
        with pytest.raises(InvalidRequest, match=f"gas but needs `{need}`"):
            sender.send(ask(playground.topics, call, need), "too little")
        receipt = publish(sender, playground.contracts, topic, b"x", idempotency_key="enough", payee=sender.address)
        assert receipt.get_event(playground.topics, Delivered).remaining > 0
        deliver(sender, playground.contracts, topic, idempotency_key="next", payee=sender.address)


def test_pages_reach_everybody_once(playground: Playground, topic: bytes) -> None:
    sender = playground.open_sender()
    assert quote_gas(playground.rpc, playground.contracts, topic, 1, 10**9) == TRANSACTION_GAS_MAX
    payload = b"long story"
    receipt = publish(
        sender, playground.contracts, topic, payload, key=b"\x05" * 32, idempotency_key="p", payee=sender.address
    )
    page = receipt.get_event(playground.topics, Delivered)
    assert page.remaining > 0
    served = {index for index, outcome in page.by_index().items() if outcome is Outcome.FAILED}

    with pytest.raises(Unavailable, match=r"event `1` .* still has pages to deliver") as raised:
        publish(sender, playground.contracts, topic, b"next", idempotency_key="q", payee=sender.address)
    assert raised.value.reason is Reason.NOT_YET

    for number in range(SUBSCRIBERS):
        if not read(playground.rpc, playground.lens, lens.get_topic(topic)).pending:
            break
        receipt = deliver(sender, playground.contracts, topic, idempotency_key=f"d{number}", payee=sender.address)
        outcomes = receipt.get_event(playground.topics, Delivered).by_index()
        newly = {index for index, outcome in outcomes.items() if outcome is Outcome.FAILED}
        assert not newly & served
        served |= newly
    assert served == set(range(SUBSCRIBERS))
    again = deliver(sender, playground.contracts, topic, idempotency_key="d0", payee=sender.address)
    assert again.get_event(playground.topics, Delivered).first == page.first + len(page.outcomes)
