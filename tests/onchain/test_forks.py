"""Publishing through Python on every fork that the contracts promise to run on."""

from pathlib import Path

import pytest

from proofcast.onchain import topics
from proofcast.onchain.events import Delivered, TopicCreated
from proofcast.onchain.io.devchain import DevChainOptions
from proofcast.onchain.io.publishing import publish
from proofcast.onchain.outcome import Outcome
from proofcast.onchain.request import ask
from proofcast.testing.onchain import run_playground


@pytest.mark.needs("anvil")
@pytest.mark.parametrize(
    "options",
    [
        DevChainOptions(hardfork="shanghai"),
        DevChainOptions(hardfork="cancun"),
        DevChainOptions(tx_gas_limit=True),
        DevChainOptions(optimism=True),
        DevChainOptions(block_time_s=1),
    ],
    ids=["shanghai", "cancun", "latest", "optimism", "blocks in time"],
)
def test_publish(options: DevChainOptions, tmp_path: Path) -> None:
    with run_playground(tmp_path, options) as playground:
        sender = playground.open_sender()
        created = sender.send(ask(playground.topics, topics.create("x")), "create")
        topic = created.get_event(playground.topics, TopicCreated).topic
        index = playground.join(playground.create("Counter"), topic)
        receipt = publish(sender, playground.contracts, topic, b"x", idempotency_key="p", payee=sender.address)
        assert receipt.get_event(playground.topics, Delivered).by_index()[index] is Outcome.DELIVERED
