"""What `proofcast exchange` and `proofcast queue` refuse before they ask a node; the guide runs the rest."""

import pytest

from proofcast.cli import main
from proofcast.cli.exchange.session import parse_id
from proofcast.cli.queue.terms import choose_condition, describe_condition
from proofcast.onchain.queues import Condition, QueueTerms
from proofcast.onchain.topics import compute_topic

A, ACCOUNT = b"\xaa" * 20, "0x" + "aa" * 20
TOPIC, QUEUE = b"\x11" * 32, "0x" + "22" * 32


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["queue", "create", "q", "--gauge", ACCOUNT], "`--gauge` goes with one of"),
        (["queue", "create", "q", "--above", "1"], "`--gauge` goes with one of"),
        (["queue", "create", "q", "--gauge", ACCOUNT, "--above", "1", "--below", "2"], "`--gauge` goes with one of"),
        (["queue", "create", "q", "--delay", "1", "--released-by", ACCOUNT], "`2` conditions were given"),
        (["queue", "show", "colours"], "`colours` names no exchange or queue"),
        (["exchange", "publish", QUEUE, "a..b", "x"], "a routing key is empty"),
        (["exchange", "publish", QUEUE, "a*", "x", "--regex"], "`*` cannot stand here"),
        (["exchange", "publish", QUEUE, "a"], "`0` payloads were given"),
    ],
)
def test_meaningless_call_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert "hint: " in printed.err
    assert printed.out == ""


def test_id_is_written_in_two_ways() -> None:
    assert parse_id(QUEUE) == b"\x22" * 32
    assert parse_id(f"{ACCOUNT}/colours") == compute_topic(A, "colours")


@pytest.mark.parametrize(
    ("arguments", "condition", "subject"),
    [
        ((False, None, None, None, None, None), Condition.AT_ONCE, bytes(32)),
        ((True, None, None, None, None, None), Condition.TIME, bytes(32)),
        ((False, TOPIC, None, None, None, None), Condition.EVENT, TOPIC),
        ((False, None, A, 0, None, None), Condition.ABOVE, bytes(12) + A),
        ((False, None, A, None, -1, None), Condition.BELOW, bytes(12) + A),
        ((False, None, None, None, None, A), Condition.ACCOUNT, bytes(12) + A),
    ],
)
def test_condition_is_the_one_that_was_named(
    arguments: tuple[object, ...], condition: Condition, subject: bytes
) -> None:
    assert choose_condition(*arguments) == (condition, subject)  # type: ignore[arg-type]
    assert describe_condition(QueueTerms(condition=condition, subject=subject))
