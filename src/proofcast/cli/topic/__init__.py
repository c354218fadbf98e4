"""`proofcast topic`: topics on a chain. One module per role: owner, subscriber, publisher, signer, onlooker."""

import click

from proofcast.cli.connection import KEY_OPTIONS, NODE_OPTIONS, SENDER_OPTIONS
from proofcast.cli.topic import audit, onlooker, owner, publisher, signer, subscriber

READERS = (onlooker.list_topics, onlooker.show, onlooker.quote, audit.audit)
SENDERS = (
    owner.create,
    owner.policy,
    owner.set_payload_type,
    owner.set_publisher,
    subscriber.subscribe,
    subscriber.unsubscribe,
    subscriber.fund,
    subscriber.withdraw,
    subscriber.collect,
    publisher.publish,
    publisher.deliver,
    publisher.seal,
    signer.relay,
)


@click.group()
def topic() -> None:
    """Create topics, subscribe to them and publish, on a chain.

    TOPIC is a topic's id, or its owner's address, a slash and its name: `0x12..ef/flight-delays`.
    """


for command in READERS:
    command.params.extend(NODE_OPTIONS)
for command in SENDERS:
    command.params.extend([*NODE_OPTIONS, *SENDER_OPTIONS])
signer.sign.params.extend([*NODE_OPTIONS, *KEY_OPTIONS])
for command in (*READERS, *SENDERS, signer.sign):
    topic.add_command(command)
