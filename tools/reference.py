"""Print the command-line reference, made from the commands; `make docs` writes it to docs/reference/cli.md."""

import sys
from collections.abc import Iterator

import click

from proofcast.cli import proofcast

HEADER = """# Command line

Made by `make docs` from the commands' own help pages; edit those instead. Data goes to stdout, everything else to
stderr. Exit codes: 0 done, 1 someone sent us something false, 2 the request has no meaning, 75 nobody answered yet.
"""
WIDTH_CHARACTERS = 100
"""Fixed, because click otherwise wraps at the width of the terminal that happens to run it."""


def format_pages(command: click.Command, parent: click.Context | None = None) -> Iterator[str]:
    """The help page of a command and of everything below it."""
    context = click.Context(command, parent, info_name=command.name, terminal_width=WIDTH_CHARACTERS)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)
        assert below is not None
        yield from format_pages(below, context)


if __name__ == "__main__":
    sys.stdout.write("\n".join([HEADER, *format_pages(proofcast)]))
