"""Subscriptions on their way up: for every rendezvous key what this peer asks of the next peer towards it.

A trunk is the part of a key's tree at this peer: own subscriptions and the statements of the peers below, summarised
into one statement to the parent, the next hop towards the key. The rules:

- a statement is sent when what it says changes: filters, shortcut or backups; what the last one covers stops here;
- each is a full replacement with a higher version, acknowledged when the parent's own is, up to the rendezvous: so an
  acknowledged subscription has a whole path;
- a peer with a single child and no subscription of its own passes that child's statement along as a shortcut, and
  withdraws it in the same way as soon as a second appears;
- a new parent gets the statement, the old one a withdrawal; the rendezvous has no parent;
- every change of the table goes to `f` backups: the peers nearest to this one, or for a rendezvous nearest to the key;
- a subscriber adds which keys it is the rendezvous of, whose events reach it anyway; a peer between passes on what is
  true of all below it.

A parent is always closer to the key than its child: no statement makes a loop, and one from a closer peer is refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from proofcast.overlay.filters import Summary, summarise
from proofcast.overlay.identity import Contact
from proofcast.overlay.messages import Replicate, Subscribe, Subscribed
from proofcast.overlay.outputs import Active
from proofcast.overlay.records import Interest
from proofcast.overlay.seat import Seat, get_ms
from proofcast.overlay.settings import ATTRIBUTES_MAX
from proofcast.overlay.statements import Statements
from proofcast.routing.predicate import Predicate


@dataclass(frozen=True, slots=True)
class Child:
    """Somebody below who waits to hear that the path is whole."""

    contact: Contact
    version: int


Asker = Child | Predicate
"""Who wants to hear that the path is whole; a predicate is this peer's own subscription."""


@dataclass(slots=True)
class Trunk:
    key: int
    parent: Contact | None = None
    """None where this peer is the rendezvous."""
    statement: Subscribe | None = None
    """The last one sent to the parent."""
    summary: Summary = field(default_factory=Summary)
    acknowledged: int = 0
    waiting: list[tuple[int, Asker]] = field(default_factory=list)
    """(version of ours that must be acknowledged, who wants to hear of it)"""
    attempts: int = 0
    backups: tuple[bytes, ...] = ()
    """Who holds a full copy of this key's table."""
    is_copied_as_root: bool = False
    newest: int = 0
    """The highest version ever used under this key, to whichever parent."""

    @property
    def version(self) -> int:
        return self.statement.interest.version if self.statement else 0


class Trunks:
    def __init__(self, seat: Seat, statements: Statements) -> None:
        self._seat = seat
        self._statements = statements
        self.trunks: dict[int, Trunk] = {}
        self.own: dict[Predicate, int] = {}
        """Own subscriptions and the key each is kept under."""
        self._roots: set[int] = set()
        """Keys this peer is the rendezvous of, as far as anybody subscribes under them."""

    # --- own subscriptions

    def subscribe(self, predicate: Predicate, key: int, now: float) -> None:
        self.own[predicate] = key
        self.update(key, now, added=(predicate,), asker=predicate)

    def unsubscribe(self, predicate: Predicate, now: float) -> None:
        self.update(self.own.pop(predicate), now)

    def get_own(self, key: int) -> list[Predicate]:
        return [predicate for predicate, kept_under in self.own.items() if kept_under == key]

    # --- the trunk of a key

    def update(
        self, key: int, now: float, added: Iterable[Predicate] | None = None, asker: Asker | None = None
    ) -> None:
        """Bring the parent up to date. `added` is all that is new below, where nothing became less."""
        trunk = self.trunks.setdefault(key, Trunk(key))
        children = self._statements.get_children(key)
        trunk.summary = self._summarise(trunk, children, added)
        parent = self._seat.table.find_next_hop(key)
        is_new_parent = parent != trunk.parent
        if is_new_parent:
            self._leave_parent(trunk, now)
            trunk.parent, trunk.statement, trunk.acknowledged = parent, None, 0
        if parent is not None:
            self._state(trunk, parent, children, now)
        if is_new_parent:  # only its own answer says that the path is whole
            trunk.waiting = [(trunk.version, waiting) for _, waiting in trunk.waiting]
        self._keep_copies(trunk)
        if asker is not None:
            trunk.waiting.append((trunk.version, asker))
        self._note_root(trunk, now)
        self._close(trunk)

    def _summarise(self, trunk: Trunk, children: list[Subscribe], added: Iterable[Predicate] | None) -> Summary:
        if added is not None and trunk.summary.covers(added):
            return trunk.summary
        if added is not None:
            return summarise([*trunk.summary.filters, *added])
        if any(child.interest.wants_all for child in children):
            return Summary((), wants_all=True)
        below = [predicate for child in children for predicate in child.interest.filters]
        return summarise([*below, *self.get_own(trunk.key)])

    def _state(self, trunk: Trunk, parent: Contact, children: list[Subscribe], now: float) -> None:
        """Send the statement if it says something new."""
        backups = tuple(self._find_backups(trunk)) if children else ()
        shortcut = self._find_shortcut(trunk, children)
        rendezvous_of = self._find_rendezvous_keys(trunk, children)
        content = (trunk.summary.filters, trunk.summary.wants_all, backups, rendezvous_of)
        last = trunk.statement
        if last and (get_content(last.interest), last.shortcut) == (content, shortcut):
            return
        if last is None and not trunk.summary.filters and not trunk.summary.wants_all:
            return
        version = self._make_version(trunk, now)
        interest = Interest(self._seat.contact, trunk.key, version, *content)
        trunk.statement = Subscribe(self._seat.sign(interest), shortcut)
        trunk.attempts = 0
        self._seat.send(parent, trunk.statement)
        self._seat.timers.set(now + self._seat.settings.resend_s, partial(self._repeat, trunk, version))

    def _find_rendezvous_keys(self, trunk: Trunk, children: list[Subscribe]) -> tuple[int, ...]:
        claims = [set(child.interest.rendezvous_of) for child in children]
        if self.get_own(trunk.key):
            claims.append(self._roots)
        return tuple(sorted(set.intersection(*claims))[:ATTRIBUTES_MAX]) if claims else ()

    def _note_root(self, trunk: Trunk, now: float) -> None:
        """Tell the parents of other keys when this peer begins or ends to be the rendezvous of one."""
        is_root = trunk.parent is None and not self._seat.is_joining
        if is_root == (trunk.key in self._roots):
            return
        self._roots ^= {trunk.key}
        for key in [key for key, other in self.trunks.items() if other.parent and self.get_own(key)]:
            self.update(key, now)

    def _make_version(self, trunk: Trunk, now: float) -> int:
        trunk.newest = max(trunk.newest + 1, get_ms(now))
        return trunk.newest

    def _find_shortcut(self, trunk: Trunk, children: list[Subscribe]) -> Interest | None:
        if not self._seat.settings.redirect or len(children) != 1 or self.get_own(trunk.key):
            return None
        return children[0].shortcut or children[0].interest

    def _leave_parent(self, trunk: Trunk, now: float) -> None:
        if trunk.parent is None or trunk.statement is None or trunk.parent.public_key not in self._seat.table:
            return
        interest = Interest(self._seat.contact, trunk.key, self._make_version(trunk, now), (), False, ())
        self._seat.send(trunk.parent, Subscribe(self._seat.sign(interest), None))

    def _repeat(self, trunk: Trunk, version: int, now: float) -> None:
        """The parent has not answered: say it again, for a while."""
        is_open = trunk.version == version and trunk.acknowledged < version
        if is_open and trunk.parent and trunk.statement and trunk.attempts < self._seat.settings.resends_max:
            trunk.attempts += 1
            self._seat.send(trunk.parent, trunk.statement)
            self._seat.timers.set(now + self._seat.settings.resend_s, partial(self._repeat, trunk, version))

    def acknowledge(self, sender: Contact, message: Subscribed) -> None:
        trunk = self.trunks.get(message.key)
        if trunk is None or trunk.parent is None or trunk.parent.public_key != sender.public_key:
            self._seat.counts["forged"] += 1
            return
        trunk.acknowledged = max(trunk.acknowledged, message.version)
        self._close(trunk)

    def _close(self, trunk: Trunk) -> None:
        """Tell those who waited for what is now whole, and forget a trunk that nobody needs any more."""
        is_root = trunk.parent is None and not self._seat.is_joining
        answered = trunk.acknowledged if trunk.parent is not None else -1
        ready = [asker for version, asker in trunk.waiting if is_root or version <= answered]
        trunk.waiting = [entry for entry in trunk.waiting if not is_root and entry[0] > answered]
        for asker in ready:
            if isinstance(asker, Child):
                self._seat.send(asker.contact, Subscribed(trunk.key, asker.version))
            else:
                self._seat.outbox.append(Active(asker))
        is_whole = is_root or answered >= trunk.version
        if is_whole and not self._statements.get_children(trunk.key) and not self.get_own(trunk.key):
            self.trunks.pop(trunk.key, None)
            self._roots.discard(trunk.key)

    # --- copies

    def _find_backups(self, trunk: Trunk) -> list[Contact]:
        place = trunk.key if trunk.parent is None else self._seat.position
        return self._seat.find_heirs(place)

    def _keep_copies(self, trunk: Trunk) -> None:
        """A peer that has just become a backup gets the whole table of the key."""
        backups = self._find_backups(trunk)
        names = tuple(backup.public_key for backup in backups)
        everything = tuple(row.statement for row in self._statements.tables.get(trunk.key, {}).values())
        for backup in backups:
            if everything and (backup.public_key not in trunk.backups or trunk.is_copied_as_root != (not trunk.parent)):
                self._seat.send(backup, Replicate(trunk.key, trunk.parent is None, everything))
        trunk.backups = names if everything else ()
        trunk.is_copied_as_root = trunk.parent is None

    def copy_statement(self, statement: Subscribe) -> None:
        """A changed row goes to those who have the rest."""
        trunk = self.trunks.get(statement.interest.key)
        if trunk is None:
            return
        for public_key in trunk.backups:
            backup = self._seat.table.contacts.get(public_key)
            if backup is not None:
                self._seat.send(backup, Replicate(trunk.key, trunk.parent is None, (statement,)))

    # --- upkeep

    def refresh(self, now: float) -> None:
        """Renew every statement and every copy, and look for better parents."""
        for key in list(self.trunks):
            trunk = self.trunks[key]
            statement, trunk.backups = trunk.statement, ()
            self.update(key, now)
            if trunk.parent is not None and trunk.statement is not None and trunk.statement is statement:
                trunk.attempts = 0
                self._seat.send(trunk.parent, trunk.statement)

    def replace_contact(self, public_key: bytes, now: float) -> None:
        """A peer vanished from the table: find other parents and backups where it was one."""
        for key in list(self.trunks):
            trunk = self.trunks[key]
            was_parent = trunk.parent is not None and trunk.parent.public_key == public_key
            if was_parent or public_key in trunk.backups:
                self.update(key, now)

    def yield_to(self, contact: Contact, now: float) -> None:
        """A closer peer appeared: the rendezvous becomes its child, and so brings it everything below."""
        for key in list(self.trunks):
            if self.trunks[key].parent is None and self._seat.is_closer(contact, key):
                self.update(key, now)


Content = tuple[tuple[Predicate, ...], bool, tuple[Contact, ...], tuple[int, ...]]


def get_content(interest: Interest) -> Content:
    """What a statement says, apart from who says it and when."""
    return interest.filters, interest.wants_all, interest.backups, interest.rendezvous_of
