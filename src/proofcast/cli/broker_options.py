"""The option that every command with a broker shares."""

import click

BROKERS = click.option(
    "--broker",
    "brokers",
    multiple=True,
    default=["http://127.0.0.1:8080"],
    show_default=True,
    help="Address of a broker; several are asked in turn.",
)
