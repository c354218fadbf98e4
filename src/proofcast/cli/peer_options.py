"""The option that every command with a local peer shares."""

from pathlib import Path

import click

DEFAULT_STATE = Path(".proofcast/peer")
STATE_OPTION = click.option(
    "--state",
    type=click.Path(path_type=Path),
    default=DEFAULT_STATE,
    envvar="PROOFCAST_PEER_DIR",
    show_default=True,
    help="Folder of this peer: key, subscriptions, known peers, socket.",
)
