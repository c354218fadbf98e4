"""`proofcast overlay`: the peer-to-peer overlay, simulated."""

from pathlib import Path

import click

from proofcast.cli.output import emit, note
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.overlay.settings import Settings
from proofcast.testing.overlay.links import Link
from proofcast.testing.overlay.picture import draw_tree
from proofcast.testing.overlay.scenario import Difference, Step, parse_scenario, play
from proofcast.testing.overlay.simulated import SimulatedStage

DEFAULT_STORY = "subscribe 0-{last} news T\nwait 1\npublish 0 news T\nwait 1\ncheck\n"
DELAY_S = 0.010
BITS_PER_S = float(1 << 20)
"""The links of the paper's measurements."""


@click.group()
def overlay() -> None:
    """Content-based publish/subscribe with no server: simulate it."""


@overlay.command()
@click.option("--peers", type=click.IntRange(2, 20_000), help="Settled peers before the scenario begins.")
@click.option(
    "--scenario", "path", type=click.Path(path_type=Path), help="Commands and what they must print; else a small one."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same run.")
@click.option("--picture", type=click.Path(path_type=Path), help="Write the tree of an attribute as SVG here.")
@click.option("--attribute", help="Of the picture; else the first that somebody subscribed to.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def simulate(
    peers: int | None, path: Path | None, seed: int, picture: Path | None, attribute: str | None, as_json: bool
) -> None:
    """Play a scenario on simulated peers that run the real protocol code."""
    steps = read_steps(path, peers)
    stage = SimulatedStage(seed, Link(DELAY_S, DELAY_S, bits_per_s=BITS_PER_S))
    if peers is not None:
        stage.add_peers(peers, Settings())
    differences = perform(steps, stage, as_json)
    if picture is not None:
        draw(stage, picture, attribute)
    report(stage, as_json)
    if differences:
        complain(differences[0])


def read_steps(path: Path | None, peers: int | None) -> list[Step]:
    if path is None:
        if peers is None:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT, "there is nothing to simulate", hint="give `--peers N`, `--scenario FILE` or both"
            )
        return parse_scenario(DEFAULT_STORY.format(last=peers - 1))
    try:
        return parse_scenario(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        message = f"`{path}` cannot be read: {error}"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="name a text file") from None


def perform(steps: list[Step], stage: SimulatedStage, as_json: bool) -> list[Difference]:
    """Run the steps, showing each with what it prints."""
    differences = []
    for number, (step, printed) in enumerate(play(steps, stage, Settings()), start=1):
        note(f"[{number}/{len(steps)}] {step.command} {step.rest}".rstrip())
        if not as_json:
            for line in printed:
                click.echo(line)
        if step.expected is not None and step.expected != tuple(printed):
            differences.append(Difference(step, tuple(printed)))
    return differences


def draw(stage: SimulatedStage, picture: Path, attribute: str | None) -> None:
    subscribed = [subscription.predicate.constraints[0][0] for subscription in stage.oracle.subscriptions]
    if attribute is None and not subscribed:
        raise InvalidRequest(Reason.BAD_ARGUMENT, "nobody subscribed to anything", hint="name one with `--attribute`")
    picture.write_text(draw_tree(stage, attribute or subscribed[0]))
    note(f"tree of `{attribute or subscribed[0]}` written to {picture}")


def report(stage: SimulatedStage, as_json: bool) -> None:
    oracle = stage.oracle
    verdict = oracle.judge(stage.get_present())
    times = [delivery.time - oracle.publications[delivery.event_id].time for delivery in oracle.deliveries]
    hops = [stage.hops.get((delivery.event_id, delivery.peer), 0) for delivery in oracle.deliveries]
    record = {
        "peers": len(stage.get_present()),
        "messages": stage.messages,
        "expected": verdict.expected,
        "delivered": verdict.delivered,
        "missing": len(verdict.missing),
        "twice": verdict.twice,
        "mean_latency_ms": round(1000 * sum(times) / len(times), 1) if times else None,
        "mean_hops": round(sum(hops) / len(hops), 2) if hops else None,
        "trace": stage.trace.hexdigest(),
    }
    emit(as_json, record, "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in record.items()))


def complain(difference: Difference) -> None:
    step = difference.step
    shown, printed = "; ".join(step.expected or ()), "; ".join(difference.printed)
    message = f"line {step.line}: `{step.command}` printed `{printed}`, the scenario says `{shown}`"
    raise InvalidInput(Reason.DISAGREES, message, hint="one of the two is wrong; `--seed` varies the run")
