"""`proofcast event`: follow events as they come, and check the evidence of one by yourself.

Checking needs no network, so `verify` is loaded without the client: it has to start fast and to run anywhere.
"""

import importlib

import click

MODULES = {"evidence": "following", "show": "following", "tail": "following", "verify": "verifying"}
"""Where each command is."""
NAMES = {"show": "show_event"}


class Verbs(click.Group):
    """Loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        found = getattr(
            importlib.import_module(f"proofcast.cli.event.{MODULES[cmd_name]}"), NAMES.get(cmd_name, cmd_name)
        )
        assert isinstance(found, click.Command), cmd_name
        return found


@click.group(cls=Verbs)
def event() -> None:
    """Follow events, and check evidence of one without trusting anybody."""
