"""What `proofcast broker serve` lets an operator choose, besides where it listens."""

import ipaddress
from pathlib import Path
from typing import TypedDict

import click
from click.decorators import FC
from click.types import FuncParamType

from proofcast.broker.edge import Edge, parse_origin
from proofcast.broker.io.guard import Network
from proofcast.broker.io.http import Settings
from proofcast.broker.io.kafka import SERVERS
from proofcast.broker.io.logs import LogFormat, open_log
from proofcast.broker.io.store.subscriptions import LEASE_S
from proofcast.cli.values import refuse
from proofcast.feed.io.retention import Limits


def parse_network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        hint = "write e.g. `127.0.0.1` or `10.0.0.0/8`"
        raise refuse(f"`{text}` is no address or network (`{error}`)", hint) from error


NETWORK, ORIGIN = FuncParamType(parse_network), FuncParamType(parse_origin)
NETWORK.name, ORIGIN.name = "network", "origin"


class ServeOptions(TypedDict):
    receivers: tuple[Network, ...]
    lease: float
    proxies: tuple[Network, ...]
    origins: tuple[str, ...]
    kafka: str
    kafka_properties: Path | None
    block_age_max: float | None
    keep_days: float | None
    keep_megabytes: int | None
    log_format: str | None
    peers: tuple[Path, ...]


OPTIONS = (
    click.option(
        "--allow-receiver",
        "receivers",
        type=NETWORK,
        multiple=True,
        help="Private addresses that webhooks may go to, e.g. `127.0.0.1` or `10.0.0.0/8`; repeat.",
    ),
    click.option(
        "--lease",
        type=click.FloatRange(min=0.5),
        default=LEASE_S,
        show_default=True,
        help="Seconds after which another broker on the same PostgreSQL takes over from one that died.",
    ),
    click.option(
        "--proxy",
        "proxies",
        type=NETWORK,
        multiple=True,
        help="Reverse proxies whose `X-Forwarded-*` headers are believed; repeat.",
    ),
    click.option(
        "--allow-origin",
        "origins",
        type=ORIGIN,
        multiple=True,
        help="Origins whose pages may use this broker, e.g. `https://app.example`; repeat.",
    ),
    click.option("--kafka", default="", help="Servers of a Kafka that subscriptions may write to, e.g. `host:9092`."),
    click.option(
        "--kafka-properties",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Further properties of it, `name=value` on each line, as librdkafka names them: passwords, certificates.",
    ),
    click.option(
        "--block-age-max",
        type=click.FloatRange(min=0, min_open=True),
        help="Seconds after which the newest verified block is too old for `/readyz`; without it age is not judged.",
    ),
    click.option(
        "--keep-days",
        type=click.FloatRange(min=0, min_open=True),
        help="Forget events of the feed that are older; without it and the next one nothing is forgotten.",
    ),
    click.option(
        "--keep-megabytes",
        type=click.IntRange(min=1),
        help="Forget the oldest events while the feed is larger.",
    ),
    click.option(
        "--log-format",
        type=click.Choice([one.value for one in LogFormat]),
        help="Write a line per request; without it nothing but warnings.",
    ),
    click.option(
        "--peer",
        "peers",
        type=click.Path(path_type=Path),
        multiple=True,
        help="Folder of a peer on this machine, to show on the dashboard; repeat.",
    ),
)


def add_options(command: FC) -> FC:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def build_settings(store: str, options: ServeOptions) -> Settings:
    """Also opens the log, so that whatever happens next is in it."""
    if options["log_format"]:
        open_log(LogFormat(options["log_format"]))
    return Settings(
        store=store,
        allowed_receivers=options["receivers"],
        lease_s=options["lease"],
        kafka=build_kafka(options["kafka"], options["kafka_properties"]),
        edge=Edge(options["proxies"], frozenset(options["origins"])),
        block_age_s_max=options["block_age_max"],
        kept=Limits(options["keep_days"], options["keep_megabytes"]),
    )


def build_kafka(servers: str, file: Path | None) -> dict[str, str]:
    """Empty where no Kafka is named."""
    return (read_properties(file) if file else {}) | ({SERVERS: servers} if servers else {})


def read_properties(file: Path) -> dict[str, str]:
    """Lines of `name=value`; a message never repeats one, because it may hold a secret."""
    found = {}
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        name, equals, value = line.partition("=")
        if line.strip() and not line.lstrip().startswith("#"):
            if not equals:
                raise refuse(f"line `{number}` of `{file}` is no property", "write `name=value` on each line")
            found[name.strip()] = value.strip()
    return found
