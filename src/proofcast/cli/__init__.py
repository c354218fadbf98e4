"""The command line: one module per noun, each parses, calls one function and prints.

Data goes to stdout, everything else to stderr. An error is one sentence and a hint; its class decides the exit code.
"""

import re
import sys
from collections.abc import Sequence

import click

from proofcast import __version__
from proofcast.cli import chain, demo, doctor, topic
from proofcast.errors import ProofcastError

COMMANDS: tuple[click.Command, ...] = (chain.chain, demo.demo, doctor.doctor, topic.topic)
"""Every noun; a new module in this folder is added here and nowhere else."""

INTERRUPTED_EXIT_CODE = 130
"""128 + SIGINT, what a shell reports for a program stopped by Ctrl-C."""


@click.group(no_args_is_help=False, invoke_without_command=True)
@click.version_option(__version__, message="proofcast %(version)s")
@click.pass_context
def proofcast(context: click.Context) -> None:
    """Publish once, deliver everywhere, prove everything."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in COMMANDS:
    proofcast.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; no traceback of a foreseen error reaches the user."""
    try:
        result = proofcast.main(args=arguments, prog_name="proofcast", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except ProofcastError as error:
        return report(str(error), error.hint, error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return report(quote_values(error.format_message()), get_usage_hint(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED_EXIT_CODE


def report(message: str, hint: str, exit_code: int) -> int:
    """Print an error the way every command prints it and hand its exit code back."""
    click.echo(f"error: {message}\nhint: {hint}", err=True)
    return exit_code


def quote_values(message: str) -> str:
    """Click writes values in quotation marks, this project writes them in backticks."""
    return re.sub(r"'([^']*)'", r"`\1`", message.rstrip("."))


def get_usage_hint(error: click.ClickException) -> str:
    """Name the help page of the very command that could not be parsed."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "proofcast"
    return f"`{path} --help` shows what it accepts"


def run() -> None:
    """Entry point of the installed script `proofcast`."""
    sys.exit(main())
