"""`proofcast queue`: queues, who is subscribed to them, and the messages they hold. One module per role."""

import click

from proofcast.cli.connection import NODE_OPTIONS, SENDER_OPTIONS
from proofcast.cli.queue import edges, messages, onlooker, owner

READERS = (onlooker.list_queues, onlooker.show)
SENDERS = (
    owner.create,
    owner.fund,
    owner.collect,
    edges.subscribe,
    edges.approve,
    edges.remove,
    edges.approve_binding,
    messages.release,
    messages.expire,
)


@click.group()
def queue() -> None:
    """Create queues, subscribe to them, release what they hold.

    QUEUE and EXCHANGE are ids, or an owner's address, a slash and a name: `0x12..ef/colours`.
    """


for command in READERS:
    command.params.extend(NODE_OPTIONS)
for command in SENDERS:
    command.params.extend([*NODE_OPTIONS, *SENDER_OPTIONS])
for command in (*READERS, *SENDERS):
    queue.add_command(command)
