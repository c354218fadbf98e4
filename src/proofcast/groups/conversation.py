"""Named groups on top of ordered messages: who is in them, and what was said.

A group is a name and a list of devices. Its members change by an operation like any other, which everybody concerned
receives at the same place of the order; so all members agree at every message on who was in the group when it was sent.

    members = 1 u8 | group 16 | u16 n | name in UTF-8 | u16 n | n x device 32     the whole list, sorted
    text    = 2 u8 | group 16 | words in UTF-8

Only a member may change the list or speak; what anybody else sends for the group is ignored by every member alike. A
removed device gets the list without it, and nothing after: every message has a key of its own that only its recipients
get.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.wire import WireReader, refuse

MEMBERS, TEXT = 1, 2
GROUP_ID_BYTES = 16
NAME_CHARACTERS_MAX = 100
MEMBERS_MAX = 128
"""Every member costs one encryption per message; the paper measures up to 128."""


@dataclass(frozen=True, slots=True)
class Group:
    group: bytes
    name: str
    members: tuple[bytes, ...]
    """Sorted; only the creator until somebody is invited."""


@dataclass(frozen=True, slots=True)
class Members:
    """From here on the group is this."""

    group: Group


@dataclass(frozen=True, slots=True)
class Text:
    group: bytes
    text: str


Operation = Members | Text


@dataclass(frozen=True, slots=True)
class Said:
    """One line of a group, as its members see it."""

    sequence: int
    sender: bytes
    group: Group
    text: str


@dataclass(slots=True)
class Conversations:
    """The groups of one device."""

    groups: dict[bytes, Group] = field(default_factory=dict)

    def apply_operation(self, sequence: int, sender: bytes, operation: Operation) -> Said | None:
        """What a received operation means; None where its sender had no say."""
        if isinstance(operation, Members):
            return self.apply_members(sequence, sender, operation.group)
        group = self.groups.get(operation.group)
        return Said(sequence, sender, group, operation.text) if group and sender in group.members else None

    def apply_members(self, sequence: int, sender: bytes, group: Group) -> Said | None:
        known = self.groups.get(group.group)
        if sender not in (known or group).members:
            return None
        self.groups[group.group] = group
        return Said(sequence, sender, group, describe_change(known, group))

    def find_by_name(self, name: str) -> Group:
        found = [group for group in self.groups.values() if group.name == name]
        if len(found) == 1:
            return found[0]
        known = ", ".join(f"`{group.name}`" for group in self.groups.values()) or "none"
        message = f"`{name}` is the name of {len(found)} groups of this device"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint=f"its groups are: {known}")


def describe_change(before: Group | None, after: Group) -> str:
    old, new = set(before.members if before else ()), set(after.members)
    changes = [f"+{len(new - old)}"] * bool(new - old) + [f"-{len(old - new)}"] * bool(old - new)
    return f"* {' '.join(changes) or 'renamed'}, now {len(new)} members"


def change_members(group: Group, *, add: Sequence[bytes] = (), remove: Sequence[bytes] = ()) -> Group:
    members = tuple(sorted((set(group.members) | set(add)) - set(remove)))
    if not 1 <= len(members) <= MEMBERS_MAX:
        message = f"a group has 1 to `{MEMBERS_MAX}` members, not `{len(members)}`"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="use several groups")
    return Group(group.group, group.name, members)


def encode_operation(operation: Operation) -> bytes:
    if isinstance(operation, Text):
        return bytes([TEXT]) + operation.group + operation.text.encode()
    group, name = operation.group, operation.group.name.encode()
    head = bytes([MEMBERS]) + group.group + len(name).to_bytes(2, "big") + name
    return head + len(group.members).to_bytes(2, "big") + b"".join(group.members)


def parse_operation(data: bytes) -> Operation:
    """What another device sent; refused where it is not exactly one of the two forms."""
    reader = WireReader(data, "the operation")
    form, group = reader.number(1), reader.take(GROUP_ID_BYTES)
    if form == TEXT:
        return Text(group, parse_text(reader.take(len(data) - reader.at)))
    if form == MEMBERS:
        return Members(parse_group(reader, group))
    raise refuse(f"the operation has the unknown form `{form}`")


def parse_group(reader: WireReader, group: bytes) -> Group:
    name = parse_text(reader.take(reader.number(2)))
    members = tuple(reader.take(32) for _ in range(reader.count(2, MEMBERS_MAX)))
    reader.finish()
    if not members or list(members) != sorted(set(members)):
        raise refuse("the members of a group are not sorted and unique")
    if not is_name(name):
        raise refuse(f"`{name!a}` is no name of a group")
    return Group(group, name, members)


def parse_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise refuse("the words of an operation are not UTF-8") from None


def is_name(name: str) -> bool:
    return name.isprintable() and 0 < len(name) <= NAME_CHARACTERS_MAX
