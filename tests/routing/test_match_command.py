"""`proofcast match` on files of JSON lines."""

import json
from pathlib import Path

import pytest

from proofcast.cli import main

SUBSCRIPTIONS = """{"id": "alice", "predicate": "surf T/price R 1000 1500"}

{"id": 7, "predicate": "colour S blue red/price N R 0 100"}
"""
EVENTS = """{"id": "e", "attributes": {"surf": true, "price": 1050.5}}
{"attributes": "colour V blue/price V 900"}
{"surf": true, "price": "1600", "tags": null}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "subscriptions").write_text(SUBSCRIPTIONS)
    (tmp_path / "events").write_text(EVENTS)
    return ["match", "--subscriptions", str(tmp_path / "subscriptions"), "--events", str(tmp_path / "events")]


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("subscriptions", "surf T", "`surf T` is no JSON object"),
        ("subscriptions", "[1]", "`[1]` is no JSON object"),
        ("subscriptions", '{"id": 1}', "there is no `predicate`"),
        ("subscriptions", '{"predicate": "surf X"}', "`X` is no letter of a constraint (character 6)"),
        ("subscriptions", '{"id": [1], "predicate": "surf T"}', "the id `[1]` is neither text nor integer"),
        ("subscriptions", '{"id": 7, "predicate": "surf T"}', "the id `7` is taken"),
        ("events", '{"attributes": "surf Q"}', "`Q` is no letter of an event's attribute"),
        ("events", '{"attributes": 5}', "`attributes` holds `5`"),
        ("events", '{"price": [1, 2, 3]}', "`price` holds"),
    ],
)
def test_false_line_is_named(
    files: list[str], name: str, line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / name).open("a") as file:
        file.write(line)
    assert main(files) == 1
    told = capsys.readouterr().err
    assert f"line 4 of `{tmp_path / name}`: " in told
    assert message in told
    assert "\nhint: " in told


def test_unknown_subscription_cannot_be_explained(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files, "--why", "carol"]) == 2
    assert "no subscription is called `carol`" in capsys.readouterr().err


def test_each_event_has_its_subscriptions(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(files) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"event": "e", "subscriptions": ["alice"]},
        {"event": 2, "subscriptions": [7]},
        {"event": 3, "subscriptions": []},
    ]


def test_why(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files, "--why", "alice"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["matches"] for line in told] == [True, False, False]
    assert told[0]["because"] == [
        "`surf` has `T`, which satisfies `T`",
        "`price` has `V 1050.5`, which satisfies `R 1000 1500`",
    ]
    assert told[1]["because"] == [
        "`surf` has nothing, but `T` is wanted",
        "`price` has `V 900`, but `R 1000 1500` is wanted",
    ]
    assert main([*files, "--why", "7"]) == 0
    assert "`colour` has nothing, but `S blue red` is wanted" in capsys.readouterr().out
