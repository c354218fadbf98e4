"""Statements that arrive from below, and the tables of others that are kept for them.

Each is checked before it changes anything: made by its sender, signed, about a key that the sender is farther from, and
within bounds. What fails is counted as `forged` or `refused` and has no effect.
"""

from proofcast.overlay.identity import Contact, is_contact_genuine
from proofcast.overlay.messages import Replicate, Subscribe, Subscribed
from proofcast.overlay.records import Interest, is_interest_genuine
from proofcast.overlay.seat import Seat
from proofcast.overlay.settings import ATTRIBUTES_MAX, FILTERS_MAX
from proofcast.overlay.statements import Statements
from proofcast.overlay.trunks import Child, Trunks
from proofcast.routing.predicate import Predicate

BACKUPS_MAX = 8
"""Backups that a statement may name: five is the most that the paper measures."""


class Subscribing:
    def __init__(self, seat: Seat, statements: Statements, trunks: Trunks) -> None:
        self._seat = seat
        self._statements = statements
        self._trunks = trunks

    def receive_statement(self, sender: Contact, statement: Subscribe, now: float) -> None:
        interest = statement.interest
        if interest.origin.public_key != sender.public_key or not self._is_sound(statement):
            self._seat.counts["forged"] += 1
            return
        if not interest.origin.position ^ interest.key > self._seat.position ^ interest.key:
            self._seat.counts["refused"] += 1
            return
        is_new = sender.public_key not in self._statements.tables.get(interest.key, {})
        if is_new and interest.is_withdrawal:
            self._seat.send(sender, Subscribed(interest.key, interest.version))
            return
        if is_new and self._statements.is_full(interest.key):
            self._seat.counts["refused"] += 1
            return
        before = self._statements.put(statement)
        if before is None or before.interest.version < interest.version:
            self._trunks.copy_statement(statement)
        child = Child(sender, interest.version)
        self._trunks.update(interest.key, now, find_added(before, interest), child)

    def _is_sound(self, statement: Subscribe) -> bool:
        """Signed by whom it names; and so is the shortcut, which must lie below its giver under the same key."""
        interest, shortcut = statement.interest, statement.shortcut
        if not self._is_genuine(interest):
            return False
        if shortcut is None:
            return True
        lies_below = shortcut.origin.position ^ interest.key > interest.origin.position ^ interest.key
        return shortcut.key == interest.key and lies_below and self._is_genuine(shortcut)

    def _is_genuine(self, interest: Interest) -> bool:
        is_bounded = (
            len(interest.filters) <= FILTERS_MAX
            and len(interest.backups) <= BACKUPS_MAX
            and len(interest.rendezvous_of) <= ATTRIBUTES_MAX
        )
        contacts = (interest.origin, *interest.backups)
        return (
            is_bounded
            and is_interest_genuine(interest, self._seat.verify)
            and all(is_contact_genuine(contact, self._seat.verify) for contact in contacts)
        )

    def receive_copies(self, sender: Contact, message: Replicate) -> None:
        for statement in message.statements:
            if statement.interest.key != message.key or not self._is_sound(statement):
                self._seat.counts["forged"] += 1
            elif self._statements.is_full(message.key):
                self._seat.counts["refused"] += 1
            else:
                self._statements.put_copy(sender.public_key, statement, is_rendezvous=message.is_rendezvous)


def find_added(before: Subscribe | None, after: Interest) -> tuple[Predicate, ...] | None:
    """The filters that are new, where the change only adds; None where it also takes away."""
    old = () if before is None else before.interest.filters
    had_all = before is not None and before.interest.wants_all
    if after.wants_all or had_all or not set(old) <= set(after.filters):
        return None
    return tuple(predicate for predicate in after.filters if predicate not in old)
