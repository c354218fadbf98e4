"""Every lie many times, and many conspiracies against an honest server.

- Each lie of a server, in whole systems of three or four devices with the real ratchet, half of them with crashes and
  devices that are away: detected, provable where the paper says so, and the proof accepted by the verifier.
- Each lie of a client: the liar blamed, the server never.
- Random histories of conspiring clients with an honest server, each followed by attempts at a proof: none accepted.

Two processes share the work by seeds; a seed that fails is printed.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from matplotlib.figure import Figure

from bench.report import RESULTS, Row, write_report
from proofcast.groups.client import Settings
from proofcast.groups.outputs import Culprit
from proofcast.groups.proof import Lie, Refused, verify_proof
from proofcast.testing.groups.clients import ClientLie
from proofcast.testing.groups.framing import iterate_framings
from proofcast.testing.groups.lies import UNPROVABLE, ServerLie
from proofcast.testing.groups.world import World

SCALE = float(os.environ.get("PROOFCAST_BENCH_SCALE", "1"))
"""1 is what the issue asks for; less misses the bound on the number of histories."""
SEEDS, HISTORIES = round(SCALE * 1_000), round(SCALE * 100_000)
"""Per lie of a server or a client; of conspiracies. A quarter of an hour of two cores."""
ATTEMPTS = 12
"""At a proof, per history."""
EPOCHS_MAX = 200
SETTINGS = Settings(answer_s_max=EPOCHS_MAX, keys_low=2, keys_full=8)
"""Devices are away for up to 20 epochs, so that nobody may be called silent for that."""
PROCESSES = 2
PORTION = 250
"""Histories that a process takes at once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    is_right: bool
    proved: Lie | None
    cpu_s: float


def run_server_lie(lie: ServerLie, seed: int) -> Outcome:
    began = time.process_time()
    trouble = 0.2 if seed % 4 > 1 else 0.0
    world = World(seed, size=3 + seed % 2, lie=lie, settings=SETTINGS, trouble=trouble)
    world.run_until_accused(EPOCHS_MAX)
    culprits = {one.culprit for one in world.accusations}
    proved = verify(world)
    is_right = world.server.has_lied and culprits == {Culprit.SERVER} and (proved is None) == (lie in UNPROVABLE)
    return Outcome(seed, is_right, proved, time.process_time() - began)


def verify(world: World) -> Lie | None:
    """What the verifier makes of the first proof."""
    (proof, *_) = [one.proof for one in world.accusations if one.proof] or [None]
    try:
        return None if proof is None else verify_proof(proof, world.server.server_key).lie
    except Refused:
        return None


def run_client_lie(lie: ClientLie, seed: int) -> Outcome:
    began = time.process_time()
    world = World(seed, size=3 + seed % 2, client_lie=lie)
    world.run_until_accused(EPOCHS_MAX)
    blamed = {one.device for one in world.accusations}
    return Outcome(seed, blamed == {world.devices[-1].id}, verify(world), time.process_time() - began)


def run_histories(first: int) -> list[int]:
    """The seeds, of a portion, whose conspirators framed the server."""
    return [seed for seed in range(first, first + PORTION) if list(iterate_framings(seed, ATTEMPTS))]


def run_seeds(pool: ProcessPoolExecutor, name: str, run: Callable[[int], Outcome], seeds: int) -> list[Outcome]:
    outcomes = list(pool.map(run, range(seeds), chunksize=25))
    wrong = [one.seed for one in outcomes if not one.is_right]
    print(
        f"{name}: {len(outcomes) - len(wrong)} of {seeds}", f"wrong seeds {wrong[:9]}" if wrong else "", file=sys.stderr
    )
    return outcomes


def make_row(name: str, outcomes: Sequence[Outcome], anchor: str) -> Row:
    share = 100 * sum(one.is_right for one in outcomes) / len(outcomes)
    return Row(name, share, "%", 100, "higher", anchor)


def draw(proofs: dict[ServerLie, list[Outcome]]) -> None:
    """Which proof each lie led to."""
    figure = Figure(figsize=(8, 4.6))
    axes = figure.subplots()
    names = [lie.value for lie in proofs]
    left = [0] * len(names)
    for kind in [*Lie, None]:
        counts = [sum(one.proved == kind for one in outcomes) for outcomes in proofs.values()]
        axes.barh(names, counts, left=left, label=kind.name if kind else "detected, not provable")
        left = [one + count for one, count in zip(left, counts, strict=True)]
    axes.set(xlabel="runs")
    axes.invert_yaxis()
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(RESULTS / "lies.svg")


def main() -> int:
    with ProcessPoolExecutor(PROCESSES) as pool:
        server = {lie: run_seeds(pool, lie.value, partial(run_server_lie, lie), SEEDS) for lie in ServerLie}
        client = {lie: run_seeds(pool, lie.value, partial(run_client_lie, lie), SEEDS) for lie in ClientLie}
        framed = [seed for portion in pool.map(run_histories, range(0, HISTORIES, PORTION)) for seed in portion]
    print(f"histories that framed the server: {framed[:9]}", file=sys.stderr)
    draw(server)
    proofs = sum(one.proved is not None for outcomes in client.values() for one in outcomes)
    rows = [
        *(make_row(f"detected{prove(lie)}: {lie.value}", server[lie], f"{SEEDS} seeds") for lie in ServerLie),
        *(make_row(f"client blamed: {lie.value}", client[lie], f"{SEEDS} seeds") for lie in ClientLie),
        Row("lies of clients that led to a proof against the server", proofs, "proofs", 0, "lower", "sound"),
        Row("random histories of lying clients", HISTORIES, "histories", 100_000, "higher", "the issue's"),
        Row("honest server framed", len(framed), "histories", 0, "lower", "sound"),
    ]
    return write_report("lies", rows)


def prove(lie: ServerLie) -> str:
    return "" if lie in UNPROVABLE else " and proved"


if __name__ == "__main__":
    sys.exit(main())
