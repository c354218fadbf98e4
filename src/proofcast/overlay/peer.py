"""One peer of the overlay: commands and messages in, outputs out; it opens no socket, reads no clock, draws no lots.

    driver                              Peer                                   parts
    ------                              ----                                   -----
    subscribe, publish, join ... ─────▶ command ──────────▶ ScoutSubs          content, no server
    a message from a neighbour  ─────▶ receive ──────────▶ FastDelivery       groups of one publisher
    a message that got nowhere  ─────▶ undeliverable ────▶ Boards             where groups are advertised
    the time has come           ─────▶ tick ─────────────▶ Finding            Kademlia
                                ◀───── outputs: Send, Store, Deliver, Active, Settle ...

The driver calls with the present time, carries out the outputs in order, and calls `tick` at `deadline`. It vouches for
the sender of a message (a libp2p connection authenticates both ends) and says so when a message could not be delivered.

Every `refresh_s` a peer renews its statements, looks around and asks for what it may have missed; every second time it
drops what others have not renewed. What is not as it should be is counted: `forged` (falsely signed, or not asked for),
`refused` (beyond a bound), `throttled` (a sender out of tokens), `redundant` (an event that was of no use here),
`repeated` (acknowledged again), `repaired` (fetched from a log), `undelivered` (given up, left to the log).
"""

from collections.abc import Sequence
from functools import partial

from proofcast.overlay.allowance import Allowance
from proofcast.overlay.boards import Boards
from proofcast.overlay.fastdelivery import FastDelivery
from proofcast.overlay.finding import Finding
from proofcast.overlay.identity import KEY_BITS, Contact, Signer, Verify
from proofcast.overlay.inbox import Inbox
from proofcast.overlay.kademlia import Table
from proofcast.overlay.messages import (
    Accepted,
    Ack,
    Advertise,
    Adverts,
    Fetch,
    FindNode,
    Handover,
    Hello,
    Joined,
    JoinGroup,
    LeaveGroup,
    Message,
    Nodes,
    Notify,
    Publish,
    Recall,
    Recalled,
    Recruit,
    Recruited,
    Relay,
    Relayed,
    Replay,
    Replicate,
    Search,
    Settled,
    Subscribe,
    Subscribed,
    Track,
    Tracked,
    Unable,
)
from proofcast.overlay.outputs import Output, Send
from proofcast.overlay.records import Event, EventId
from proofcast.overlay.scoutsubs import ScoutSubs
from proofcast.overlay.seat import Seat
from proofcast.overlay.seen import Mark, Seen
from proofcast.overlay.settings import Settings
from proofcast.routing.attributes import EventAttributes
from proofcast.routing.predicate import Predicate


class Peer:
    def __init__(
        self,
        contact: Contact,
        signer: Signer,
        verify: Verify,
        settings: Settings,
        *,
        session: int,
        entropy: int,
        now: float,
        joined: float | None = None,
        marks: tuple[Mark, ...] = (),
    ) -> None:
        """`session` is larger than any before; `entropy` spreads refreshes and searches; `marks` were stored before."""
        table = Table(contact.position, settings.bucket_contacts)
        self.seat = Seat(contact, signer, verify, settings, table, now if joined is None else joined)
        self._inbox = Inbox(self.seat, Seen(marks))
        self.finding = Finding(self.seat, self._begin)
        self.scout = ScoutSubs(self.seat, self.finding, self._inbox, session)
        self.fast = FastDelivery(self.seat, self._inbox)
        self.boards = Boards(self.seat)
        self.allowance = Allowance()
        self._draw = entropy % (1 << KEY_BITS)
        first = settings.refresh_s * (0.5 + (entropy % 1000) / 2000)
        self.seat.timers.set(now + first, partial(self._refresh, 1))

    # --- commands

    def join(self, bootstrap: Sequence[Contact], now: float) -> list[Output]:
        """Enter the network by peers that are in it."""
        self.finding.join(tuple(bootstrap), now)
        return self._take_outputs(now)

    def subscribe(self, predicate: Predicate, now: float, since: float | None = None) -> list[Output]:
        """Ask for events, also for logged ones since a time in the past; `Active` says when the path is whole."""
        self.scout.subscribe(predicate, now if since is None else since, now)
        return self._take_outputs(now)

    def unsubscribe(self, predicate: Predicate, now: float) -> list[Output]:
        self.scout.unsubscribe(predicate, now)
        return self._take_outputs(now)

    def publish(self, attributes: EventAttributes, payload: bytes, now: float) -> tuple[EventId, list[Output]]:
        """Publish by ScoutSubs, and to the own groups that the event belongs to; `Settle` says when it is safe."""
        return self._publish(self.scout.publishing.make_event(attributes, payload, now), now)

    def publish_at(
        self, session: int, sequence: int, born_ms: int, attributes: EventAttributes, payload: bytes, now: float
    ) -> tuple[EventId, list[Output]]:
        """The same with an id of the caller's choice: repeated after a crash, it is delivered to nobody twice."""
        event = self.scout.publishing.make_event_at(session, sequence, born_ms, attributes, payload)
        return self._publish(event, now)

    def _publish(self, event: Event, now: float) -> tuple[EventId, list[Output]]:
        self.fast.publish(event, now)
        self.scout.publishing.publish(event, now)
        return event.id, self._take_outputs(now)

    def publish_to_groups(
        self, attributes: EventAttributes, payload: bytes, now: float
    ) -> tuple[EventId, list[Output]]:
        """Publish to the own groups alone."""
        event = self.scout.publishing.make_event(attributes, payload, now)
        self.fast.publish(event, now)
        return event.id, self._take_outputs(now)

    def open_group(self, predicate: Predicate, now: float) -> list[Output]:
        """Open a group and advertise it."""
        self.fast.open_group(predicate, None)
        self.boards.advertise(predicate, now, is_open=True)
        return self._take_outputs(now)

    def open_private_group(self, predicate: Predicate, guests: frozenset[bytes], now: float) -> list[Output]:
        """Open a group that nobody hears of and only the guests may join."""
        self.fast.open_group(predicate, guests)
        return self._take_outputs(now)

    def search_groups(self, predicate: Predicate, now: float) -> list[Output]:
        """Ask which advertised groups overlap the predicate; `Found` is the answer."""
        self.boards.search(predicate)
        return self._take_outputs(now)

    def join_group(self, publisher: Contact, group: Predicate, predicate: Predicate, now: float) -> list[Output]:
        """Become a member; `Admit` is the answer."""
        self.fast.join_group(publisher, group, predicate, now)
        return self._take_outputs(now)

    def leave_group(self, publisher: bytes, group: Predicate, now: float) -> list[Output]:
        self.fast.leave_group(publisher, group)
        return self._take_outputs(now)

    # --- what the driver reports

    def receive(self, sender: Contact, message: Message, now: float) -> list[Output]:
        if not self.allowance.take(sender.public_key, now):
            self.seat.counts["throttled"] += 1
            return []
        if sender.public_key not in self.seat.table:
            self._meet(sender, now)
        self._dispatch(sender, message, now)
        return self._take_outputs(now)

    def undeliverable(self, contact: Contact, message: Message, now: float) -> list[Output]:
        """The peer is not there: forget it, and find the message another way."""
        if self.seat.table.remove(contact.public_key):
            self.scout.trunks.replace_contact(contact.public_key, now)
        self._divert(contact, message, now)
        return self._take_outputs(now)

    def tick(self, now: float) -> list[Output]:
        self.seat.timers.run(now)
        return self._take_outputs(now)

    def deadline(self) -> float | None:
        return self.seat.timers.get_deadline()

    # --- inside

    def _meet(self, sender: Contact, now: float) -> None:
        if not sender.address:
            return
        if self.seat.table.add(sender):
            self.scout.yield_to(sender, now)
            self.boards.hand_over(sender)
        else:
            self.finding.make_room(sender, now)

    def _begin(self, now: float) -> None:
        self.scout.begin(now)

    def _refresh(self, count: int, now: float) -> None:
        self._draw = self._draw * 6364136223846793005 + 1442695040888963407 & (1 << KEY_BITS) - 1
        self.finding.refresh(self._draw, now)
        self.fast.refresh()
        if count % 2 == 0:
            self.scout.swap(now)
        self.scout.refresh(now)
        self.seat.timers.set(now + self.seat.settings.refresh_s, partial(self._refresh, count + 1))

    def _take_outputs(self, now: float) -> list[Output]:
        """Empty the outbox; what this peer says to itself is heard at once."""
        done: list[Output] = []
        outbox = self.seat.outbox
        for output in outbox:
            if isinstance(output, Send) and output.to.public_key == self.seat.contact.public_key:
                self._dispatch(output.to, output.message, now)
            else:
                done.append(output)
        outbox.clear()
        return done

    def _dispatch(self, sender: Contact, message: Message, now: float) -> None:
        match message:
            case Notify() | Ack() | Unable():
                self._receive_down(sender, message, now)
            case Publish() | Accepted() | Track() | Tracked() | Settled():
                self._receive_rendezvous(sender, message, now)
            case Subscribe() | Subscribed() | Replicate():
                self._receive_subscription(sender, message, now)
            case FindNode() | Nodes():
                self._receive_kademlia(sender, message, now)
            case Recall() | Recalled() | Fetch() | Replay() | Handover():
                self._receive_past(sender, message, now)
            case Advertise() | Search() | Adverts():
                self._receive_board(message)
            case Hello():
                pass  # the driver's
            case _:
                self._receive_group(sender, message, now)

    def _receive_down(self, sender: Contact, message: Notify | Ack | Unable, now: float) -> None:
        match message:
            case Notify():
                self.scout.receive_notify(sender, message, now)
            case Ack():
                self.scout.passages.acknowledge(sender, message)
            case Unable():
                self.scout.passages.fail(sender, message.event_id, message.key, message.stand_in_for)

    def _receive_rendezvous(
        self, sender: Contact, message: Publish | Accepted | Track | Tracked | Settled, now: float
    ) -> None:
        match message:
            case Publish():
                self.scout.receive_publish(message, now)
            case Accepted():
                self.scout.publishing.accept(sender, message)
            case Track():
                self.scout.receive_track(sender, message, now)
            case Tracked():
                self.scout.rendezvous.confirm(sender, message)
            case Settled():
                self.scout.rendezvous.release(message.event_id, message.key)

    def _receive_subscription(self, sender: Contact, message: Subscribe | Subscribed | Replicate, now: float) -> None:
        match message:
            case Subscribe():
                self.scout.subscribing.receive_statement(sender, message, now)
            case Subscribed():
                self.scout.trunks.acknowledge(sender, message)
            case Replicate():
                self.scout.subscribing.receive_copies(sender, message)

    def _receive_kademlia(self, sender: Contact, message: FindNode | Nodes, now: float) -> None:
        match message:
            case FindNode():
                self.finding.answer(sender, message)
            case Nodes():
                self.finding.receive_nodes(sender, message, now)

    def _receive_past(
        self, sender: Contact, message: Recall | Recalled | Fetch | Replay | Handover, now: float
    ) -> None:
        match message:
            case Recall():
                self.scout.recalls.answer(sender, message, now)
            case Recalled():
                self.scout.recalls.receive_digest(sender, message)
            case Fetch():
                self.scout.recalls.replay(sender, message)
            case Replay():
                self.scout.recalls.receive_replay(sender, message)
            case Handover():
                self.scout.receive_handover(sender, message, now)

    def _receive_board(self, message: Advertise | Search | Adverts) -> None:
        match message:
            case Advertise():
                self.boards.receive_advert(message)
            case Search():
                self.boards.receive_search(message)
            case Adverts():
                self.boards.receive_adverts(message)

    def _receive_group(
        self,
        sender: Contact,
        message: JoinGroup | Joined | LeaveGroup | Recruit | Recruited | Relay | Relayed,
        now: float,
    ) -> None:
        match message:
            case Relay():
                self.fast.receive_relay(sender, message, now)
            case Relayed():
                self.fast.receive_relayed(sender, message)
            case JoinGroup():
                self.fast.admit(sender, message)
            case Joined():
                self.fast.receive_joined(sender, message)
            case LeaveGroup():
                self.fast.dismiss_member(sender, message)
            case Recruit():
                self.fast.receive_recruit(sender, message)
            case Recruited():
                self.fast.receive_recruited(sender, message)

    def _divert(self, contact: Contact, message: Message, now: float) -> None:
        """Another way for a message that got nowhere; the others are repeated by whoever waits for an answer."""
        match message:
            case Notify():
                self.scout.passages.fail(contact, message.event.id, message.key, message.stand_in_for)
            case Publish():
                self.scout.rendezvous.forward(message, now)
            case Track():
                self.scout.rendezvous.lose_tracker(contact, message.event, message.key)
            case FindNode():
                self.finding.fail(message.target, contact, now)
            case Relay():
                self.fast.fail(contact, message)
            case Search() | Advertise(is_copy=False):
                self._receive_board(message)
