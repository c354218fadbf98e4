"""The overlay beside the reference's published figures: latency, completeness, scale, and real libp2p hosts.

The reference ran one container per node on a 16-core machine; here links are simulated (10 ms, 2^20 bit/s, queues) and
the code on them is the real one. Latencies are simulated time; CPU and memory are this process's.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise, product
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

from matplotlib.figure import Figure

from bench.overlay_hosts import measure_hosts
from bench.overlay_large import DELIVERIES, PEERS, ROUTE_SIZES, measure_routes, run_large
from bench.overlay_scenarios import (
    PLAYS,
    Measured,
    Stage,
    measure,
    measure_regional_fast,
    measure_regional_scout,
    measure_replication,
    play_fast,
)
from bench.report import RESULTS, Row, write_report
from proofcast.overlay.settings import Settings

VARIANTS = {
    "BU": Settings(redirect=False, reliable=False, bucket_contacts=10),
    "BR": Settings(redirect=False, reliable=True, bucket_contacts=10),
    "RU": Settings(redirect=True, reliable=False, bucket_contacts=10),
    "RR": Settings(redirect=True, reliable=True, bucket_contacts=10),
}
REFERENCE_MS = {"Normal": "202-254", "SubBurst": "202-250", "EventBurst": "1,788-2,505", "Fault": "206-269"}
REFERENCE_TWICE = {"Normal": "9.8-17 %", "SubBurst": "9.8-17 %", "EventBurst": "4.6-12 %", "Fault": "8.3-17 %"}
BOUND_MS = {"Normal": 60, "SubBurst": 60, "EventBurst": 200, "Fault": 60}


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def run_apart(function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
    """In a process of its own: the memory of one measurement must not hide that of the next."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **named).result()


def judge_scenarios() -> tuple[list[Row], dict[str, Measured]]:
    rows, plot = [], {}
    for (name, play), (variant, settings) in product(PLAYS.items(), VARIANTS.items()):
        one = run_apart(measure, play, settings)
        plot[f"{name} {variant}"] = one
        title = f"{name} {variant}, 60 peers"
        redundant_bound = None if name == "Fault" else 1.0
        rows += [
            lower(f"{title}: event", one.event_ms, "ms", BOUND_MS[name], f"reference {REFERENCE_MS[name]}"),
            lower(f"{title}: slowest event", one.event_ms_max, "ms", None, "reference 359-9,730"),
            lower(f"{title}: subscription", one.subscription_ms, "ms", 100, "reference ~160"),
            lower(f"{title}: missing of {one.expected}", one.missing, "events", 0, "reference 0"),
            lower(f"{title}: delivered twice", one.twice, "events", 0, f"reference {REFERENCE_TWICE[name]}"),
            lower(f"{title}: redundant arrivals", 100 * one.redundant, "%", redundant_bound, "reference 5-22 %"),
            lower(f"{title}: messages", one.messages, "", None, "reference does not say"),
            lower(f"{title}: CPU of all peers", one.cpu_s, "s", None, "reference 1.9-21 s"),
            lower(f"{title}: memory of all peers", one.memory_mb, "MB", None, "reference 5-310 MB"),
        ]
    fast = run_apart(measure, play_fast, Settings(capacity=100, bucket_contacts=10))
    plot["Fast"] = fast
    rows += [
        lower("FastDelivery, 60 peers: event", fast.event_ms, "ms", 60, "reference 212"),
        lower(f"FastDelivery, 60 peers: missing of {fast.expected}", fast.missing, "events", 0, "reference 1"),
        lower("FastDelivery, 60 peers: delivered twice", fast.twice, "events", 0, "reference 0"),
    ]
    return rows, plot


def judge_replication() -> tuple[list[Row], dict[int, list[Stage]]]:
    sweep = {backups: measure_replication(backups) for backups in (1, 2, 3, 5)}
    rows = []
    for backups, stages in sweep.items():
        for number, stage in enumerate(stages, start=1):
            title = f"f = {backups}, stage {number}, 75 peers"
            rows += [
                lower(f"{title}: event", stage.event_ms, "ms", 60, "reference 148-330"),
                lower(f"{title}: subscription", stage.subscription_ms, "ms", 100, "reference 141-418"),
                lower(f"{title}: missing", stage.missing, "events", 0, "reference 0"),
            ]
    return rows, sweep


def judge_regions() -> list[Row]:
    fast, scout = measure_regional_fast(), measure_regional_scout()
    return [
        lower("regions, FastDelivery: hops at most", fast.hops_max, "hops", 2, "the paper's promise"),
        lower("regions, FastDelivery: event", fast.event_ms, "ms", scout.event_ms, "ScoutSubs on the same links"),
        lower("regions, ScoutSubs: event", scout.event_ms, "ms", None, "reference 212 on 10 ms links"),
        lower("regions, FastDelivery: missing", fast.missing, "events", 0, "reference 1"),
        lower("regions, FastDelivery: messages of the publisher", fast.publisher_sent, "", None, "59 members"),
        lower("regions, ScoutSubs: messages of the publisher", scout.publisher_sent, "", None, "59 subscribers"),
    ]


def judge_scale() -> tuple[list[Row], dict[int, float]]:
    print(f"{PEERS:,} peers, twice", file=sys.stderr)
    with_redirect, without = run_large(redirect=True), run_large(redirect=False)
    routes = {size: measure_routes(size) for size in ROUTE_SIZES}
    growth = [routes[larger] - routes[smaller] for smaller, larger in pairwise(ROUTE_SIZES)]
    rows = [
        Row(f"{PEERS:,} peers: deliveries", with_redirect.deliveries, "", DELIVERIES, "higher", "reference 135 peers"),
        lower(f"{PEERS:,} peers: missing", with_redirect.missing, "events", 0, "no reference"),
        lower(f"{PEERS:,} peers: delivered twice", with_redirect.twice, "events", 0, "no reference"),
        lower(f"{PEERS:,} peers: CPU", with_redirect.cpu_s, "s", 60, "no reference"),
        lower(f"{PEERS:,} peers: hops with redirect", with_redirect.hops, "hops", without.hops, "without redirect"),
        lower(f"{PEERS:,} peers: hops without redirect", without.hops, "hops", None, "no reference"),
        *(lower(f"route to a key, {size:,} peers", hops, "hops", None, "O(log n)") for size, hops in routes.items()),
        lower("hops for ten times the peers, at most", max(growth), "hops", 3.33, "log2 of 10: O(log n)"),
    ]
    return rows, routes


def lower(metric: str, value: float, unit: str, bound: float | None, anchor: str) -> Row:
    return Row(metric, round(value, 2), unit, bound, "lower", anchor)


def draw(plot: dict[str, Measured], sweep: dict[int, list[Stage]], routes: dict[int, float]) -> None:
    figure = Figure(figsize=(13, 4))
    left, middle, right = figure.subplots(1, 3)
    left.barh(list(plot), [one.event_ms for one in plot.values()])
    left.set(xlabel="mean event latency, ms (reference 202-2,505)")
    left.tick_params(axis="y", labelsize=6)
    for backups, stages in sweep.items():
        middle.plot(range(1, 5), [stage.event_ms for stage in stages], "o-", label=f"event, f = {backups}")
        middle.plot(
            range(1, 5), [stage.subscription_ms for stage in stages], "s--", label=f"subscription, f = {backups}"
        )
    middle.set(xlabel="stage, 75 peers", ylabel="ms", ylim=(0, None))
    middle.legend(fontsize=6)
    right.semilogx(list(routes), list(routes.values()), "o-")
    right.set(xlabel="peers", ylabel="hops to the rendezvous", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(RESULTS / "overlay.svg")


def main() -> int:
    scenario_rows, plot = judge_scenarios()
    replication_rows, sweep = judge_replication()
    scale_rows, routes = judge_scale()
    RESULTS.mkdir(exist_ok=True)
    draw(plot, sweep, routes)
    return write_report(
        "overlay", [*scenario_rows, *replication_rows, *judge_regions(), *scale_rows, *run_apart(measure_hosts)]
    )


if __name__ == "__main__":
    sys.exit(main())
