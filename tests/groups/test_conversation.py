"""Named groups: who may say what, and that all members agree on it."""

import pytest

from proofcast.errors import InvalidInput, InvalidRequest
from proofcast.groups.conversation import (
    MEMBERS_MAX,
    Conversations,
    Group,
    Members,
    Text,
    change_members,
    encode_operation,
    parse_operation,
)
from proofcast.groups.notebook import Notebook
from proofcast.groups.outputs import Accuse, Culprit, Deliver, RolledBack, Suspect

ALICE, BOB, MALLORY = b"a" * 32, b"b" * 32, b"m" * 32
FAMILY = Group(b"g" * 16, "family", (ALICE, BOB))
GOOD = encode_operation(Members(FAMILY))


def make_members(name: bytes, *members: bytes) -> bytes:
    head = b"\x01" + FAMILY.group + len(name).to_bytes(2, "big") + name
    return head + len(members).to_bytes(2, "big") + b"".join(members)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x03" + FAMILY.group,
        b"\x02" + FAMILY.group[:-1],
        b"\x02" + FAMILY.group + b"\xff",
        GOOD[:-1],
        GOOD + b"\0",
        make_members(b"family"),
        make_members(b"family", BOB, ALICE),
        make_members(b"family", ALICE, ALICE),
        make_members(b"family", *(number.to_bytes(32, "big") for number in range(MEMBERS_MAX + 1))),
        make_members(b"line\nbreak", ALICE),
        make_members(b"", ALICE),
        make_members(b"x" * 101, ALICE),
        make_members(b"\xff", ALICE),
    ],
)
def test_malformed_operation_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_operation(data)


def test_stranger_has_no_say() -> None:
    conversations = Conversations()
    conversations.apply_operation(1, ALICE, Members(FAMILY))
    taken_over = Members(Group(FAMILY.group, "mine now", (MALLORY,)))
    assert conversations.apply_operation(2, MALLORY, taken_over) is None
    assert conversations.apply_operation(3, MALLORY, Text(FAMILY.group, "hi")) is None
    assert conversations.apply_operation(4, BOB, Text(b"x" * 16, "hi")) is None
    assert conversations.groups == {FAMILY.group: FAMILY}


def test_group_without_its_sender_is_not_begun() -> None:
    assert Conversations().apply_operation(1, MALLORY, Members(FAMILY)) is None


def test_name_of_two_groups_is_refused() -> None:
    conversations = Conversations({FAMILY.group: FAMILY, b"h" * 16: Group(b"h" * 16, "family", (ALICE,))})
    with pytest.raises(InvalidRequest, match="the name of 2 groups"):
        conversations.find_by_name("family")


def test_group_without_members_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="not `0`"):
        change_members(FAMILY, remove=[ALICE, BOB])


@pytest.mark.parametrize("operation", [Members(FAMILY), Text(FAMILY.group, "grüße \N{DOVE OF PEACE}")])
def test_operations_come_back(operation: Members | Text) -> None:
    assert parse_operation(encode_operation(operation)) == operation


def test_removed_member_speaks_no_more() -> None:
    conversations = Conversations()
    conversations.apply_operation(1, ALICE, Members(FAMILY))
    conversations.apply_operation(2, ALICE, Members(change_members(FAMILY, remove=[BOB])))
    assert conversations.apply_operation(3, BOB, Text(FAMILY.group, "still here?")) is None


def deliver(sequence: int, sender: bytes, operation: Members | Text) -> Deliver:
    return Deliver(sequence, sender, FAMILY.members, encode_operation(operation))


def test_notebook_is_rebuilt_from_what_it_stored() -> None:
    notebook = Notebook(contacts={"bob": BOB})
    changes = notebook.note([deliver(1, ALICE, Members(FAMILY)), deliver(2, BOB, Text(FAMILY.group, "hi"))])
    again = Notebook()
    again.load({name: value for name, value in changes.items() if value is not None})
    assert [said.text for said in again.lines] == ["* +2, now 2 members", "hi"]
    assert again.conversations == notebook.conversations


def test_rollback_undoes_lines_and_members() -> None:
    notebook = Notebook()
    notebook.note([deliver(1, ALICE, Members(FAMILY)), deliver(2, BOB, Text(FAMILY.group, "hi"))])
    changes = notebook.note([RolledBack(2)])
    assert [said.sequence for said in notebook.lines] == [1]
    assert changes["app/operation/2"] is None


def test_incidents_are_told_in_clear_words() -> None:
    notebook = Notebook(contacts={"bob": BOB})
    notebook.note(
        [
            Suspect(BOB, 7, "why"),
            Accuse(Culprit.SERVER, None, 7, "it dropped a message", b"proof", 0),
            Accuse(Culprit.SERVER, None, 7, "it signed wrongly", None, 0),
            Accuse(Culprit.PEER, BOB, 7, "it sent garbage", None, 0),
        ]
    )
    assert notebook.incidents == [
        "message 7 from bob does not fit: why. bob is asked.",
        "YOUR SERVER LIED, here is the proof: it dropped a message",
        "YOUR SERVER LIED, and it cannot be shown to others: it signed wrongly",
        "bob lied or failed: it sent garbage",
    ]
