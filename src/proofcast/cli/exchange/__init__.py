"""`proofcast exchange`: messages routed by keys to queues. One module per role."""

import click

from proofcast.cli.connection import NODE_OPTIONS, SENDER_OPTIONS
from proofcast.cli.exchange import edges, onlooker, owner, publisher

READERS = (onlooker.list_exchanges, onlooker.show, onlooker.why)
SENDERS = (
    owner.deploy,
    owner.create,
    owner.collect,
    edges.join,
    edges.approve,
    edges.remove,
    edges.bind,
    edges.unbind,
    publisher.publish,
)


@click.group()
def exchange() -> None:
    """Create exchanges, bind queues to them, publish messages by routing key.

    EXCHANGE and QUEUE are ids, or an owner's address, a slash and a name: `0x12..ef/colours`.
    """


for command in READERS:
    command.params.extend(NODE_OPTIONS)
for command in SENDERS:
    command.params.extend([*NODE_OPTIONS, *SENDER_OPTIONS])
for command in (*READERS, *SENDERS):
    exchange.add_command(command)
