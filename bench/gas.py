"""What topics cost on a chain, beside the reference's figures on the same work.

The reference figures are those of its own recipe (release v0.1.6 with solc 0.8.20, shanghai); the sample publisher and
the sample subscriber that stores 64 characters do the same work as the reference's samples. Gas is the receipt's
`gasUsed` on anvil.
"""

import sys
from dataclasses import dataclass

from matplotlib.figure import Figure

from bench.gasbed import GasBed, build_contracts, count_delivered, get_gas, get_selector, open_gas_bed
from bench.report import RESULTS, Row, write_report
from proofcast.onchain.policy import Policy

SWEEP = 20
"""Publishers and subscribers, as in the paper's experiment."""
OPEN_SUBSCRIBERS = 2_800
SEALED_SUBSCRIBERS = 4_560
"""Six pages of 760 records; more than a transaction serves, so that what it serves is its limit."""
GWEI = 10**9


@dataclass(frozen=True, slots=True)
class Sweep:
    registers: list[int]
    subscribes: list[int]
    publishes: list[int]
    """To 1, 2, 3 ... subscribers that store 64 characters, each its first event."""


def measure_sweep(bed: GasBed) -> Sweep:
    registers = [bed.add_publisher()[2] for _ in range(SWEEP)]
    subscribes, publishes = [], []
    for count in range(1, SWEEP + 1):
        publisher, topic, _ = bed.add_publisher()
        subscribes = [bed.add_store(topic) for _ in range(count)]
        publishes.append(get_gas(bed.publish(publisher)))
    return Sweep(registers, subscribes, publishes)


def measure_own_policy(bed: GasBed) -> int:
    from_policy = get_selector("registerWith(uint256)") + Policy().pack().to_bytes(32, "big")
    publisher = bed.create("SamplePublisher", "SamplePublisher", bytes(12) + bytes.fromhex(bed.topics[2:]))
    return get_gas(bed.send(publisher["contractAddress"], from_policy))


def measure_marginal(bed: GasBed, kind: str, *, sealed: bool = False) -> float:
    """Gas of one more subscriber, between 8 and 24: two whole words."""
    costs = []
    for count in (8, 24):
        publisher, topic, _ = bed.add_publisher()
        if kind == "bare":
            bed.add_bare(topic, count)
        else:
            bed.add_animals(topic, kind, count)
        if sealed:
            bed.seal(topic, 1)
        costs.append(get_gas(bed.publish(publisher)))
    return (costs[1] - costs[0]) / 16


def measure_capacity(bed: GasBed, count: int, each: float, *, sealed: bool) -> tuple[int, float]:
    """No-op subscribers served by one transaction, and the gas of the next page besides its deliveries at `each`."""
    publisher, topic, _ = bed.add_publisher()
    bed.add_bare(topic, count)
    if sealed:
        bed.seal(topic, count // 760)
    first = bed.publish(publisher)
    page = bed.deliver(topic)
    return count_delivered(first), get_gas(page) - count_delivered(page) * each


def measure_ratio(bed: GasBed, subscribers: int) -> float:
    """Credit over the whole publish's fee."""
    publisher, topic, _ = bed.add_publisher()
    bed.add_bare(topic, subscribers)
    before = bed.get_topic_credit(topic)
    receipt = bed.publish(publisher)
    fee = get_gas(receipt) * int(receipt["effectiveGasPrice"], 16)
    return (bed.get_topic_credit(topic) - before) * GWEI / fee


def draw(sweep: Sweep) -> None:
    counts = range(1, SWEEP + 1)
    figure = Figure(figsize=(9, 3.6))
    left, right = figure.subplots(1, 2)
    left.plot(counts, sweep.registers, "o-", label="register")
    left.plot(counts, sweep.subscribes, "s-", label="subscribe")
    left.axhline(569_739, ls="--", lw=0.8, color="C0", label="reference: register")
    left.axhline(159_118, ls="--", lw=0.8, color="C1", label="reference: subscribe")
    left.set(xlabel="publishers, subscribers", ylabel="gas", ylim=(0, None))
    right.plot(counts, sweep.publishes, "o-", label="publish")
    right.plot(counts, [134_768 + 80_882 * (n - 1) for n in counts], "--", lw=0.8, label="reference: publish")
    right.set(xlabel="subscribers that store 64 characters", ylim=(0, None))
    for axes in (left, right):
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "gas.svg")


def measure() -> list[Row]:
    with open_gas_bed() as bed:
        sweep = measure_sweep(bed)
        draw(sweep)
        registers = sum(sweep.registers) / SWEEP
        no_op, no_op_sealed = measure_marginal(bed, "bare"), measure_marginal(bed, "bare", sealed=True)
        whole_words = sum(sweep.subscribes[:16]) / 16
        further = (sweep.publishes[-1] - sweep.publishes[0]) / (SWEEP - 1)
        rows = [
            lower("deploy", bed.deploy_gas, 2_100_000, "reference 623,330"),
            lower("deploy and 10 topics", bed.deploy_gas + 10 * registers, 2_700_000, "reference 6.3 M"),
            lower("register, default policy", registers, 50_000, "reference 569,739"),
            lower("register, own policy", measure_own_policy(bed), 73_000, "reference has none"),
            lower("subscribe, mean of two words of eight", whole_words, 70_000, "reference 159,118"),
            lower("publish to 1 that stores 64 characters", sweep.publishes[0], 122_500, "reference 134,768"),
            lower("each further one, first event", further, 73_500, "reference 80,882"),
            lower("each further no-op, open", no_op, 6_250, "reference 11,583"),
            lower("each further no-op, sealed", no_op_sealed, 4_250, "reference 11,583"),
            lower("each further that sets a flag", measure_marginal(bed, "FlagSetter"), 12_000, "paper: 6,500 alone"),
        ]
        print("filling lists of thousands of subscribers", file=sys.stderr)
        served, page = measure_capacity(bed, OPEN_SUBSCRIBERS, no_op, sealed=False)
        sealed, _ = measure_capacity(bed, SEALED_SUBSCRIBERS, no_op_sealed, sealed=True)
        rows += [
            Row("no-ops in one transaction, open", served, "subscribers", 2_550, "higher", "reference 82"),
            Row("no-ops in one transaction, sealed", sealed, "subscribers", 3_900, "higher", "reference 82"),
            lower("a continuation page, fixed part", page, 50_000, "reference has none"),
        ]
        for count in (1, 8, 20):
            ratio = measure_ratio(bed, count)
            anchor = "reference 0.33 with 1, 0.47 with 3"
            rows.append(Row(f"credit / fee with {count}, at least", ratio, "", 0.99, "higher", anchor))
            rows.append(Row(f"credit / fee with {count}, at most", ratio, "", 1.05, "lower", anchor))
    return rows


def lower(metric: str, value: float, bound: float, anchor: str) -> Row:
    return Row(metric, round(value, 1), "gas", bound, "lower", anchor)


if __name__ == "__main__":
    build_contracts()
    sys.exit(write_report("gas", measure()))
