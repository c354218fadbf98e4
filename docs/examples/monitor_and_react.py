"""Monitor and react: for every event of one topic, one transaction; once, whatever dies when.

    python docs/examples/monitor_and_react.py BROKER NODE TOPIC ANSWERS FOLDER

Every event of TOPIC, verified, is answered by a publication to ANSWERS. Two things make it happen once: the sender
writes a transaction down before it sends it and knows it again by its key, here the event's topic and sequence; and the
cursor is kept only after the transaction is mined. Killed at any moment and started again, it goes on where it was.

The same program is the second half of a hybrid subscriber: a small contract subscribed to TOPIC does what cannot wait
inside the publishing transaction, and this does the rest. Answers cannot be taken back, so let events become final
first where reorgs matter: PROOFCAST_FINALITY=finalized.
"""

import os
import sys
from pathlib import Path

from proofcast.chain.io.rpc import RpcClient
from proofcast.client.io.http import Client, Subscription
from proofcast.event import Event, Step
from proofcast.onchain.io.artefacts import get_contracts
from proofcast.onchain.io.keys import load_account
from proofcast.onchain.io.publishing import publish
from proofcast.onchain.io.sender import Sender


def react(subscription: Subscription, sender: Sender, answers: bytes, cursor_file: Path) -> None:
    for event in subscription:
        if event.step is Step.APPLY:
            answer(event, sender, answers)
        keep(cursor_file, subscription.cursor)


def answer(event: Event, sender: Sender, answers: bytes) -> None:
    publish(
        sender,
        get_contracts(),
        answers,
        b"seen: " + event.payload,
        idempotency_key=f"answer to {event.topic.hex()}/{event.sequence}",
        payee=sender.address,
    )


def keep(file: Path, cursor: str) -> None:
    """All or nothing, also when the power fails in between."""
    fresh = file.with_suffix(".new")
    fresh.write_text(cursor)
    fresh.replace(file)


def main(broker: str, node: str, topic: str, answers: str, folder: str) -> None:
    cursor_file = Path(folder) / "cursor"
    start = cursor_file.read_text() if cursor_file.exists() else "oldest"
    with RpcClient(node) as rpc, Client(broker) as client:
        sender = Sender(rpc, load_account(None, str, os.environ), Path(folder))
        finality = os.environ.get("PROOFCAST_FINALITY", "latest")
        subscription = client.subscribe(topic, start=start, finality=finality)
        react(subscription, sender, bytes.fromhex(answers.removeprefix("0x")), cursor_file)


if __name__ == "__main__":
    main(*sys.argv[1:])
