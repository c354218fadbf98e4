"""`proofcast exchange`: messages routed by keys to queues. One module per role."""

import click

from proofcast.cli.exchange import edges, onlooker, owner, publisher

COMMANDS = (
    owner.deploy,
    owner.create,
    owner.collect,
    onlooker.list_exchanges,
    onlooker.show,
    onlooker.why,
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


for command in COMMANDS:
    exchange.add_command(command)
