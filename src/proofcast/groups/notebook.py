"""What a device's owner knows: contacts, own further devices, what was said, and what went wrong.

Everything said is kept as the operation that came, at its place of the order; groups follow from it. Records are named
`app/...` in the device's file, beside those of the core.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.groups.conversation import Conversations, Said, parse_operation
from proofcast.groups.identity import encode_address
from proofcast.groups.outputs import (
    Accuse,
    Deliver,
    Lost,
    NoKeys,
    Output,
    Restored,
    RolledBack,
    SnapshotWanted,
    Suspect,
)

Changes = dict[str, bytes | None]
CONTACT, LINKED, OPERATION, INCIDENT = "app/contact/", "app/linked/", "app/operation/", "app/incident/"
Incident = Suspect | Accuse | Restored | Lost | NoKeys | RolledBack | SnapshotWanted


@dataclass(slots=True)
class Notebook:
    contacts: dict[str, bytes] = field(default_factory=dict)
    linked: dict[str, bytes] = field(default_factory=dict)
    """Further devices of the same person: they are members wherever this one is."""
    operations: dict[int, bytes] = field(default_factory=dict)
    """By sequence: sender | operation."""
    incidents: list[str] = field(default_factory=list)
    lines: list[Said] = field(default_factory=list)
    conversations: Conversations = field(default_factory=Conversations)

    def load(self, records: Mapping[str, bytes]) -> None:
        for name, value in records.items():
            if name.startswith(CONTACT):
                self.contacts[name.removeprefix(CONTACT)] = value
            elif name.startswith(LINKED):
                self.linked[name.removeprefix(LINKED)] = value
            elif name.startswith(OPERATION):
                self.operations[int(name.removeprefix(OPERATION))] = value
        incidents = sorted(name for name in records if name.startswith(INCIDENT))
        self.incidents = [records[name].decode() for name in incidents]
        self.rebuild()

    def rebuild(self) -> None:
        """Groups and lines from the operations, in order."""
        self.conversations, self.lines = Conversations(), []
        for sequence in sorted(self.operations):
            self.apply_operation(sequence)

    def apply_operation(self, sequence: int) -> Said | None:
        record = self.operations[sequence]
        try:
            said = self.conversations.apply_operation(sequence, record[:32], parse_operation(record[32:]))
        except InvalidInput:
            return None
        if said is not None:
            self.lines.append(said)
        return said

    # --- what the core tells

    def note(self, outputs: list[Output]) -> Changes:
        """Keep what concerns the owner; what must be stored for that."""
        changes: Changes = {}
        for output in outputs:
            if isinstance(output, Deliver):
                changes |= self.note_delivery(output)
            elif isinstance(output, RolledBack):
                changes |= self.note_rollback(output.sequence)
            if isinstance(output, Incident):
                changes[f"{INCIDENT}{len(self.incidents):09}"] = self.note_incident(output).encode()
        return changes

    def note_delivery(self, deliver: Deliver) -> Changes:
        self.operations[deliver.sequence] = deliver.sender + deliver.operation
        self.apply_operation(deliver.sequence)
        return {f"{OPERATION}{deliver.sequence}": self.operations[deliver.sequence]}

    def note_rollback(self, sequence: int) -> Changes:
        gone = [one for one in self.operations if one >= sequence]
        for one in gone:
            del self.operations[one]
        self.rebuild()
        return {f"{OPERATION}{one}": None for one in gone}

    def note_incident(self, incident: Incident) -> str:
        self.incidents.append(self.describe(incident))
        return self.incidents[-1]

    def describe(self, incident: Incident) -> str:
        """In the words of the owner."""
        match incident:
            case Suspect():
                who = self.get_name(incident.peer)
                return f"message {incident.sequence} from {who} does not fit: {incident.reason}. {who} is asked."
            case Accuse(culprit=culprit, device=None):
                proof = "here is the proof" if incident.proof else "and it cannot be shown to others"
                return f"YOUR {culprit.value.upper()} LIED, {proof}: {incident.sentence}"
            case Accuse():
                return f"{self.get_name(incident.device or b'')} lied or failed: {incident.sentence}"
            case Restored():
                return f"this is a restored backup; the server knows of {incident.counter} series: starting anew"
            case Lost():
                return f"message {incident.sequence} from {self.get_name(incident.sender)} was lost with the backup"
            case NoKeys():
                names = ", ".join(map(self.get_name, incident.devices))
                return f"not sent: the server has no keys of {names}"
            case RolledBack():
                return f"everything from message {incident.sequence} on was undone"
            case SnapshotWanted():
                return f"take the state at message {incident.sequence} from a peer you trust"

    # --- names

    def get_name(self, device: bytes) -> str:
        """The owner's name for a device, else its address."""
        named = {known: name for name, known in (self.linked | self.contacts).items()}
        return named.get(device) or encode_address(device)[:12] + ".."

    def get_contact(self, name: str) -> bytes:
        if name not in self.contacts:
            known = ", ".join(f"`{one}`" for one in sorted(self.contacts)) or "nobody"
            message = f"`{name}` is not among this device's contacts"
            raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint=f"known are {known}; see `proofcast contact add`")
        return self.contacts[name]
