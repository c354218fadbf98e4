"""FastDelivery: events from a publisher to the members of its group, and a member's work as a helper.

The publisher sends a `Relay` to each interested member it serves itself and to each helper that is interested or serves
somebody who is; a helper sends it on to its interested delegates and answers when they have. So an event makes at most
two hops. Whoever has not answered in time, or cannot be reached, is passed over: in a helper's place the publisher
serves the delegates itself.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from proofcast.errors import InvalidRequest, Reason
from proofcast.overlay.audience import Audience
from proofcast.overlay.groups import Group, Member, Recruiting
from proofcast.overlay.identity import Contact, is_contact_genuine
from proofcast.overlay.inbox import Inbox
from proofcast.overlay.messages import Joined, JoinGroup, LeaveGroup, Recruit, Recruited, Relay, Relayed
from proofcast.overlay.outputs import Admit
from proofcast.overlay.records import Event, EventId, is_event_genuine
from proofcast.overlay.seat import Seat, get_ms
from proofcast.overlay.settings import PASSAGES_MAX
from proofcast.routing.attributes import EventAttributes
from proofcast.routing.predicate import Predicate, matches

GroupName = tuple[bytes, Predicate]
"""Publisher and predicate."""
RoundName = tuple[EventId, Predicate]


@dataclass(slots=True)
class Round:
    """One event on its way to those this peer serves, as publisher or as helper."""

    group: Predicate
    event: Event
    waiting: dict[bytes, Contact]
    unreached: list[bytes] = field(default_factory=list)
    publisher: Contact | None = None
    """Who wants to hear how it ended; None where that is this peer."""
    repeated: bool = False

    @property
    def name(self) -> RoundName:
        return self.event.id, self.group


@dataclass(slots=True)
class Duty:
    """Whom this peer serves for a publisher, by the newest briefing."""

    version: int
    delegates: dict[bytes, Contact]
    audience: Audience

    def find_interested(self, attributes: EventAttributes) -> dict[bytes, Contact]:
        return {key: self.delegates[key] for key in self.audience.find(attributes)}


def make_duty(briefing: Recruit) -> Duty:
    audience = Audience()
    for delegate in briefing.delegates:
        for predicate in delegate.predicates:
            audience.add(delegate.member.public_key, predicate)
    members = {delegate.member.public_key: delegate.member for delegate in briefing.delegates}
    return Duty(briefing.version, members, audience)


class FastDelivery:
    def __init__(self, seat: Seat, inbox: Inbox) -> None:
        self._seat = seat
        self._inbox = inbox
        self._recruiting = Recruiting(seat)
        self.groups: dict[Predicate, Group] = {}
        """Own groups."""
        self.memberships: dict[GroupName, Contact] = {}
        self.duties: dict[GroupName, Duty] = {}
        """Groups in which this peer helps."""
        self._rounds: OrderedDict[RoundName, Round] = OrderedDict()
        self._predicates: dict[GroupName, dict[Predicate, None]] = {}
        """What this peer wants of each group it is in."""

    # --- the publisher

    def open_group(self, predicate: Predicate, guests: frozenset[bytes] | None) -> None:
        self.groups.setdefault(predicate, Group(predicate, guests)).guests = guests

    def publish(self, event: Event, now: float) -> int:
        """Send the event to every group it belongs to; returns to how many."""
        groups = [group for group in self.groups.values() if matches(group.predicate, event.attributes)]
        for group in groups:
            self._begin(Round(group.predicate, event, self._find_targets(group, event)), now)
        return len(groups)

    def _find_targets(self, group: Group, event: Event) -> dict[bytes, Contact]:
        interested = group.audience.find(event.attributes)
        chosen = (group.members[key].helper or key for key in interested)
        return {key: group.members[key].contact for key in chosen}

    def admit(self, sender: Contact, message: JoinGroup) -> None:
        group = self.groups.get(message.group)
        is_own = message.member.public_key == sender.public_key and is_contact_genuine(
            message.member, self._seat.verify
        )
        if not is_own:
            self._seat.counts["forged"] += 1
            return
        is_admitted = group is not None and group.admit(message)
        self._seat.send(sender, Joined(message.group, message.predicate, is_admitted))
        if group is not None and is_admitted:
            member = group.members[sender.public_key]
            if member.helper is not None:
                self._recruiting.brief(group, group.members[member.helper])
            self._recruiting.balance(group, member.region)

    def dismiss_member(self, sender: Contact, message: LeaveGroup) -> None:
        group = self.groups.get(message.group)
        if group is not None:
            self._recruiting.remove(group, sender.public_key)

    def receive_recruited(self, sender: Contact, message: Recruited) -> None:
        group = self.groups.get(message.group)
        helper = group.members.get(sender.public_key) if group else None
        if group and helper and not message.is_willing:
            helper.capacity = 0
            self._recruiting.dismiss(group, helper)
            self._recruiting.balance(group, helper.region)

    # --- rounds, as publisher and as helper

    def _begin(self, round_: Round, now: float) -> None:
        self._rounds[round_.name] = round_
        if len(self._rounds) > PASSAGES_MAX:
            self._rounds.popitem(last=False)
        for contact in round_.waiting.values():
            self._seat.send(contact, self._make_relay(round_))
        self._seat.timers.set(now + self._seat.settings.resend_s, partial(self._time_out, round_.name))
        self._end_if_over(round_)

    def _make_relay(self, round_: Round) -> Relay:
        return Relay(round_.group, round_.event, by_helper=round_.publisher is not None)

    def _time_out(self, name: RoundName, now: float) -> None:
        """Who has not answered is asked once more, a helper replaced; then the round is over."""
        round_ = self._rounds.get(name)
        if round_ is None:
            return
        for contact in list(round_.waiting.values()):
            if round_.repeated or round_.publisher is not None:
                self._pass_over(round_, contact)
            elif not self._replace_helper(round_, contact):
                self._seat.send(contact, self._make_relay(round_))
        round_.repeated = True
        self._seat.timers.set(now + self._seat.settings.resend_s, partial(self._time_out, name))
        self._end_if_over(round_)

    def fail(self, contact: Contact, message: Relay) -> None:
        round_ = self._rounds.get((message.event.id, message.group))
        if round_ is not None and contact.public_key in round_.waiting:
            self._pass_over(round_, contact)
            self._end_if_over(round_)

    def _pass_over(self, round_: Round, contact: Contact) -> None:
        """It cannot be reached: its delegates are served directly, and it is no longer a member."""
        round_.waiting.pop(contact.public_key, None)
        round_.unreached.append(contact.public_key)
        self._replace_helper(round_, contact)
        group = self.groups.get(round_.group) if round_.publisher is None else None
        if group is not None:
            self._recruiting.remove(group, contact.public_key)

    def _replace_helper(self, round_: Round, contact: Contact) -> bool:
        group = self.groups.get(round_.group) if round_.publisher is None else None
        helper = group.members.get(contact.public_key) if group else None
        if group is None or helper is None or not helper.serves:
            return False
        helper.capacity = 0
        self._serve(round_, self._recruiting.dismiss(group, helper))
        return True

    def _serve(self, round_: Round, members: Iterable[Member]) -> None:
        for member in members:
            if member.wants(round_.event.attributes):
                round_.waiting[member.contact.public_key] = member.contact
                self._seat.send(member.contact, self._make_relay(round_))

    def receive_relayed(self, sender: Contact, message: Relayed) -> None:
        round_ = self._rounds.get((message.event_id, message.group))
        if round_ is None or round_.waiting.pop(sender.public_key, None) is None:
            self._seat.counts["forged"] += round_ is None
            return
        group = self.groups.get(round_.group)
        if group is not None and round_.publisher is None:
            self._serve(round_, [group.members[key] for key in message.unreached if key in group.members])
        self._end_if_over(round_)

    def _end_if_over(self, round_: Round) -> None:
        if round_.waiting or round_.name not in self._rounds:
            return
        del self._rounds[round_.name]
        if round_.publisher is not None:
            self._seat.send(round_.publisher, Relayed(round_.group, round_.event.id, tuple(round_.unreached)))

    # --- the member and helper

    def join_group(self, publisher: Contact, group: Predicate, predicate: Predicate, now: float) -> None:
        name = (publisher.public_key, group)
        self.memberships[name] = publisher
        self._predicates.setdefault(name, {})[predicate] = None
        self._inbox.wanted.setdefault(predicate, get_ms(now))
        self._ask_to_join(name, predicate)

    def _ask_to_join(self, name: GroupName, predicate: Predicate) -> None:
        settings = self._seat.settings
        request = JoinGroup(name[1], predicate, self._seat.contact, settings.region, settings.capacity)
        self._seat.send(self.memberships[name], request)

    def refresh(self) -> None:
        """Join again: a publisher drops members that it cannot reach for a moment."""
        for name, predicates in self._predicates.items():
            for predicate in predicates:
                self._ask_to_join(name, predicate)

    def leave_group(self, publisher: bytes, group: Predicate) -> None:
        contact = self.memberships.pop((publisher, group), None)
        if contact is None:
            hint = "`proofcast peer status` lists the groups"
            raise InvalidRequest(Reason.BAD_ARGUMENT, f"this peer is in no group `{group}` of that peer", hint=hint)
        self.duties.pop((publisher, group), None)
        for predicate in self._predicates.pop((publisher, group)):
            self._inbox.wanted.pop(predicate, None)
        self._seat.send(contact, LeaveGroup(group))

    def receive_joined(self, sender: Contact, message: Joined) -> None:
        if (sender.public_key, message.group) in self.memberships:
            self._seat.outbox.append(Admit(message.group, message.predicate, message.is_admitted))

    def receive_recruit(self, sender: Contact, message: Recruit) -> None:
        """Help where we are a member and strong enough; newer briefings replace older ones."""
        name = (sender.public_key, message.group)
        is_willing = name in self.memberships and len(message.delegates) <= self._seat.settings.capacity
        known = self.duties.get(name)
        if is_willing and (known is None or known.version < message.version):
            self.duties[name] = make_duty(message)
        self._seat.send(sender, Recruited(message.group, message.version, is_willing))

    def receive_relay(self, sender: Contact, message: Relay, now: float) -> None:
        event = message.event
        if not is_event_genuine(event, self._seat.verify):
            self._seat.counts["forged"] += 1
            return
        is_delivered = self._inbox.offer(event)
        duty = self.duties.get((event.id.publisher, message.group))
        waiting = {} if message.by_helper or duty is None else duty.find_interested(event.attributes)
        if not is_delivered and not waiting:
            self._seat.counts["redundant"] += 1
        self._begin(Round(message.group, event, waiting, publisher=sender), now)
