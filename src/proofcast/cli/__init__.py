"""The command line: one module per noun, each parses, calls one function and prints.

Data goes to stdout, everything else to stderr. An error is one sentence and a hint; its class decides the exit code.
"""

import importlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from proofcast import __version__
from proofcast.errors import ProofcastError, Reason, Unavailable


@dataclass(frozen=True, slots=True)
class Noun:
    """A command that is loaded when it is used: some stand on large libraries that not every installation has."""

    summary: str
    extra: str = ""
    """The optional part of the package without which it cannot be loaded."""


NOUNS = {
    "block": Noun("Check recorded blocks against their own headers."),
    "broker": Noun("Serve verified events to subscribers.", "broker"),
    "chain": Noun("Run a development chain and deploy the contracts."),
    "contact": Noun("Name the devices of other people.", "groups"),
    "demo": Noun("Run everything and show what an event goes through, checked line by line.", "broker"),
    "device": Noun("Make and show the identities of this machine's devices.", "groups"),
    "doctor": Noun("Say what works on this machine, what does not, and how to get it."),
    "event": Noun("Follow events, and check evidence of one without trusting anybody.", "broker"),
    "exchange": Noun("Route messages by keys to queues, on a chain."),
    "feed": Noun("Look after the feed between the pipeline and the broker."),
    "gateway": Noun("Carry events between brokers, chains and the overlay, with what proves them.", "broker"),
    "group": Noun("Talk in groups whose order and content no server can change unnoticed.", "groups"),
    "key": Noun("Make, list and revoke the keys of a broker.", "broker"),
    "match": Noun("Print which subscriptions each event matches, and why."),
    "overlay": Noun("Simulate publish/subscribe with no server."),
    "peer": Noun("Take part in publish/subscribe with no server.", "overlay"),
    "pipeline": Noun("Turn blocks into verified tables, on Spark.", "spark"),
    "subscription": Noun("Make, look at, pause and redrive durable subscriptions.", "broker"),
    "queue": Noun("Hold messages of exchanges and deliver them to contracts."),
    "topic": Noun("Create topics, publish to them, subscribe contracts."),
    "up": Noun("Run everything: chain, contracts, pipeline, broker, dashboard.", "broker"),
}
"""Every noun is a module of this folder with a command of the same name; a new one is added here and nowhere else."""

INTERRUPTED_EXIT_CODE = 130
"""128 + SIGINT, what a shell reports for a program stopped by Ctrl-C."""


class Nouns(click.Group):
    """Loads a noun when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*NOUNS, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in NOUNS or cmd_name in self.commands:
            return super().get_command(ctx, cmd_name)
        try:
            found = getattr(importlib.import_module(f"proofcast.cli.{cmd_name}"), cmd_name)
        except ModuleNotFoundError as error:
            raise explain_missing(cmd_name, error) from error
        assert isinstance(found, click.Command), cmd_name
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, noun.summary) for name, noun in sorted(NOUNS.items())])


def explain_missing(name: str, error: ModuleNotFoundError) -> Unavailable:
    """A library that is not installed; a module of our own that is missing is a bug."""
    assert not (error.name or "").startswith("proofcast"), error
    return Unavailable(
        Reason.TOOL_MISSING,
        f"`proofcast {name}` needs `{error.name}`, which is not installed",
        hint=f"`pip install 'proofcast[{NOUNS[name].extra}]'`",
    )


@click.group(cls=Nouns, no_args_is_help=False, invoke_without_command=True)
@click.version_option(__version__, message="proofcast %(version)s")
@click.pass_context
def proofcast(context: click.Context) -> None:
    """Publish once, deliver everywhere, prove everything."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


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
