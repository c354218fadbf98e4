"""FastDelivery, the publisher's side: multicast groups, served in at most two hops.

A group is named by its publisher and a predicate. Members say what they want of it, where they are and how many others
they could serve. The publisher sends to members itself, up to a number for each region; beyond it the strongest member
there is recruited as a helper and the weakest are delegated to it. A helper that declines, leaves, fails or does not
answer is dropped and its delegates are served directly from that moment on, with the very event that found it out.

A private group is never advertised and admits only the guests that its publisher has named.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from proofcast.overlay.audience import Audience
from proofcast.overlay.identity import Contact
from proofcast.overlay.messages import Delegate, JoinGroup, Recruit
from proofcast.overlay.seat import Seat
from proofcast.overlay.settings import MEMBERS_MAX
from proofcast.routing.attributes import EventAttributes
from proofcast.routing.predicate import Predicate, matches, overlaps


@dataclass(slots=True)
class Member:
    contact: Contact
    region: str
    capacity: int
    """How many others it can serve; 0 once it has declined."""
    predicates: dict[Predicate, None] = field(default_factory=dict)
    helper: bytes | None = None
    """Who serves it; None for the publisher."""
    serves: dict[bytes, None] = field(default_factory=dict)
    """Whom it serves."""

    def wants(self, attributes: EventAttributes) -> bool:
        return any(matches(predicate, attributes) for predicate in self.predicates)


@dataclass(slots=True)
class Group:
    predicate: Predicate
    guests: frozenset[bytes] | None
    """Public keys that a private group admits; None for everybody."""
    members: dict[bytes, Member] = field(default_factory=dict)
    audience: Audience = field(default_factory=Audience)
    version: int = 0
    """Of the recruitments sent."""

    def iterate_direct(self, region: str) -> Iterator[Member]:
        """Members of the region that the publisher serves itself and that serve nobody."""
        for member in self.members.values():
            if member.region == region and member.helper is None and not member.serves:
                yield member

    def admit(self, request: JoinGroup) -> bool:
        is_guest = self.guests is None or request.member.public_key in self.guests
        known = self.members.get(request.member.public_key)
        if not is_guest or not overlaps(self.predicate, request.predicate):
            return False
        if known is None and len(self.members) >= MEMBERS_MAX:
            return False
        if known is None:
            known = Member(request.member, request.region, min(request.capacity, MEMBERS_MAX))
            self.members[request.member.public_key] = known
        known.predicates[request.predicate] = None
        self.audience.add(request.member.public_key, request.predicate)
        return True

    def remove(self, public_key: bytes) -> Member | None:
        self.audience.remove(public_key)
        return self.members.pop(public_key, None)


class Recruiting:
    """Keeps the load of a group's publisher within bounds, region by region."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    def balance(self, group: Group, region: str) -> None:
        """Delegate the weakest direct members while there are too many, take everybody back where few are left."""
        limit = self._seat.settings.direct_per_region_max
        direct = sorted(group.iterate_direct(region), key=lambda member: (member.capacity, member.contact.public_key))
        helpers = [member for member in group.members.values() if member.region == region and member.serves]
        changed: dict[bytes, Member] = {}
        while len(direct) + len(helpers) > limit:
            helper = self._find_helper(helpers, direct)
            if helper is None:
                break
            weakest = next((member for member in direct if member is not helper), None)
            if weakest is None:
                break
            direct.remove(weakest)
            weakest.helper = helper.contact.public_key
            helper.serves[weakest.contact.public_key] = None
            changed[helper.contact.public_key] = helper
        for helper in changed.values():
            self.brief(group, helper)

    def _find_helper(self, helpers: list[Member], direct: list[Member]) -> Member | None:
        """The strongest helper with room, else the strongest member that can become one."""
        willing = [helper for helper in helpers if len(helper.serves) < helper.capacity]
        if willing:
            return max(willing, key=lambda member: member.capacity - len(member.serves))
        if not direct or direct[-1].capacity < 1:
            return None
        recruit = direct.pop()
        helpers.append(recruit)
        return recruit

    def brief(self, group: Group, helper: Member) -> None:
        """Tell a helper whom it serves now."""
        group.version += 1
        served = [group.members[key] for key in helper.serves]
        delegates = tuple(Delegate(member.contact, tuple(member.predicates)) for member in served)
        self._seat.send(helper.contact, Recruit(group.predicate, group.version, delegates))

    def dismiss(self, group: Group, helper: Member) -> list[Member]:
        """Serve its delegates directly again; returns them."""
        served = [group.members[key] for key in helper.serves]
        for member in served:
            member.helper = None
        helper.serves.clear()
        return served

    def remove(self, group: Group, public_key: bytes) -> None:
        member = group.remove(public_key)
        if member is None:
            return
        self.dismiss(group, member)
        helper = group.members.get(member.helper) if member.helper else None
        if helper is not None:
            helper.serves.pop(public_key, None)
            self.release_if_idle(group, helper)
        self.balance(group, member.region)

    def release_if_idle(self, group: Group, helper: Member) -> None:
        """A helper is released when the publisher can serve all of the region itself."""
        direct = sum(1 for _ in group.iterate_direct(helper.region))
        if direct + 1 + len(helper.serves) <= self._seat.settings.direct_per_region_max:
            self.dismiss(group, helper)
        self.brief(group, helper)
