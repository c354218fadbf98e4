"""Advertisement boards: at the rendezvous of each attribute, which multicast groups exist, and copies at its heirs."""

from proofcast.overlay.identity import Contact, compute_key
from proofcast.overlay.messages import Advertise, Adverts, Search
from proofcast.overlay.outputs import Found
from proofcast.overlay.records import Advert, is_advert_genuine
from proofcast.overlay.seat import Seat, get_ms
from proofcast.overlay.settings import ADVERTS_MAX, LOG_KEYS_MAX
from proofcast.routing.predicate import Predicate, overlaps

ANSWER_ADVERTS_MAX = 50
"""Adverts in one answer: more than a person reads."""


class Boards:
    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self.boards: dict[int, dict[tuple[bytes, Predicate], Advert]] = {}
        self._searching: set[Predicate] = set()

    def advertise(self, predicate: Predicate, now: float, *, is_open: bool) -> None:
        """Tell the boards of all attributes; an advert is replaced by the next one for the same group."""
        advert = self._seat.sign(Advert(self._seat.contact, predicate, get_ms(now), is_open))
        for name, _ in predicate.constraints:
            self.receive_advert(Advertise(advert, compute_key(name), is_copy=False))

    def receive_advert(self, message: Advertise) -> None:
        if not is_advert_genuine(message.advert, self._seat.verify):
            self._seat.counts["forged"] += 1
            return
        hop = self._seat.table.find_next_hop(message.key)
        if hop is not None and not message.is_copy:
            self._seat.send(hop, message)
            return
        self._post(message.key, message.advert)
        if not message.is_copy:
            for heir in self._seat.find_heirs(message.key):
                self._seat.send(heir, Advertise(message.advert, message.key, is_copy=True))

    def _post(self, key: int, advert: Advert) -> None:
        if key not in self.boards and len(self.boards) >= LOG_KEYS_MAX:
            self._seat.counts["refused"] += 1
            return
        board = self.boards.setdefault(key, {})
        name = (advert.publisher.public_key, advert.predicate)
        known = board.get(name)
        if known is None and len(board) >= ADVERTS_MAX:
            self._seat.counts["refused"] += 1
        elif known is None or known.version < advert.version:
            board[name] = advert

    def search(self, predicate: Predicate) -> None:
        """Ask the board of the predicate's first attribute; every group that overlaps it and names it is there."""
        self._searching.add(predicate)
        key = compute_key(predicate.constraints[0][0])
        self.receive_search(Search(key, predicate, self._seat.contact))

    def receive_search(self, message: Search) -> None:
        hop = self._seat.table.find_next_hop(message.key)
        if hop is not None:
            self._seat.send(hop, message)
            return
        board = self.boards.get(message.key, {}).values()
        found = [advert for advert in board if advert.is_open and overlaps(advert.predicate, message.predicate)]
        self._seat.send(message.reply_to, Adverts(message.predicate, tuple(found[:ANSWER_ADVERTS_MAX])))

    def receive_adverts(self, message: Adverts) -> None:
        if message.predicate not in self._searching:
            return
        self._searching.discard(message.predicate)
        genuine = [advert for advert in message.adverts if is_advert_genuine(advert, self._seat.verify)]
        self._seat.counts["forged"] += len(message.adverts) - len(genuine)
        self._seat.outbox.append(Found(message.predicate, tuple(genuine)))

    def hand_over(self, contact: Contact) -> None:
        """A closer peer has come: it gets the boards of the keys that are now its own."""
        for key, board in self.boards.items():
            if self._seat.table.find_next_hop(key) is contact:
                for advert in board.values():
                    self._seat.send(contact, Advertise(advert, key, is_copy=True))
