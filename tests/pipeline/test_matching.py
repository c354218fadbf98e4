"""Matching on Spark: the same answer as the plain function, whoever computes it."""

import random
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from proofcast.pipeline.matching import match_events
from proofcast.pipeline.schemas import Table, get_spark_schema
from proofcast.routing.attributes import read_fields
from proofcast.routing.predicate import matches, parse_predicate

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]
SEED = 16
WANTED = {
    "large": "Transfer T/value R 500 *",
    "small or none": "Transfer T/value R * 99",
    "anything paid": "paid T",
    "of alice": "from S alice bob",
    "beyond 64 bits": f"value R {2**200} *",
    "nothing": "Approval T/value R 1 1",
}


def make_rows(seed: int) -> list[dict[str, object]]:
    """Events of which the last does not decode, and one says nothing that a predicate could name."""
    rng = random.Random(seed)
    arguments: list[dict[str, str] | None] = [
        {
            "value": str(rng.choice([rng.randrange(1000), 2**255])),
            "paid": rng.choice(["true", "false"]),
            "from": rng.choice(["alice", "bob", "carol", ""]),
        }
        for _ in range(200)
    ]
    arguments += [{"value": "x" * 5000, "\x00": "1"}, None]
    return [
        {
            "sequence": place,
            "number": place // 7,
            "block_hash": bytes(32),
            "time": datetime(2026, 1, 1, tzinfo=UTC),
            "trust": "linked",
            "transaction_index": 0,
            "log_index": place % 7,
            "address": bytes(20),
            "address_head": 0,
            "abi": "token",
            "name": rng.choice(["Transfer", "Burn"]),
            "signature": "",
            "arguments": given,
            "fault": None if given is not None else "it does not decode",
        }
        for place, given in enumerate(arguments)
    ]


def test_spark_matches_as_the_plain_function(spark: SparkSession) -> None:
    rows = make_rows(SEED)
    events = spark.createDataFrame(rows, get_spark_schema(Table.EVENTS)).repartition(3)
    found = match_events(events, spark.sparkContext.broadcast(WANTED)).collect()
    predicates = {name: parse_predicate(text) for name, text in WANTED.items()}
    expected = {}
    for row in rows:
        given = row["arguments"]
        if isinstance(given, dict):
            attributes = read_fields([str(row["name"])], given)
            names = [name for name, predicate in predicates.items() if matches(predicate, attributes)]
            if names:
                expected[row["sequence"]] = names
    assert {row["sequence"]: row["subscriptions"] for row in found} == expected, f"seed {SEED}"
    assert {name for names in expected.values() for name in names} == WANTED.keys() - {"nothing"}
