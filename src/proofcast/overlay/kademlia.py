"""Kademlia's routing table: of every part of the key space some peers, of the nearest part all.

The distance of two places is their XOR. A bucket holds the contacts whose distance has the same number of bits, at most
`size` of them: so a peer knows `size` of the other half of the network, `size` of the other half of its own half, and
in the end everybody near it. Contacts that answer stay, because who has been here long will be here longer; a newcomer
waits in no list: it is heard of again. A contact enters only when it has spoken to us itself, which an answer naming it
cannot replace.

Towards any key the table gives a next hop that is strictly closer, or none where this peer is the closest: hence no
route has a loop.
"""

from collections import OrderedDict

from proofcast.overlay.identity import Contact
from proofcast.overlay.settings import LOST_MAX


class Table:
    """The contacts of the peer at `position`."""

    def __init__(self, position: int, size: int) -> None:
        self.position = position
        self.size = size
        self.contacts: dict[bytes, Contact] = {}
        self.lost: OrderedDict[bytes, Contact] = OrderedDict()
        """Contacts that vanished, most recent last: asked now and then whether they are back."""
        self._buckets: dict[int, list[Contact]] = {}
        self._next_hops: dict[int, Contact | None] = {}

    def __len__(self) -> int:
        return len(self.contacts)

    def __contains__(self, public_key: bytes) -> bool:
        return public_key in self.contacts

    def add(self, contact: Contact) -> bool:
        """Is it new here? A known contact's address is brought up to date; a full bucket keeps what it has."""
        bucket = self._buckets.setdefault((contact.position ^ self.position).bit_length(), [])
        known = self.contacts.get(contact.public_key)
        if known == contact or contact.position == self.position:
            return False
        if known is not None:
            bucket[bucket.index(known)] = contact
        elif len(bucket) < self.size:
            bucket.append(contact)
        else:
            return False
        self.contacts[contact.public_key] = contact
        self.lost.pop(contact.public_key, None)
        self._next_hops.clear()
        return known is None

    def remove(self, public_key: bytes) -> bool:
        contact = self.contacts.pop(public_key, None)
        if contact is None:
            return False
        self._buckets[(contact.position ^ self.position).bit_length()].remove(contact)
        self._next_hops.clear()
        self.lost[public_key] = contact
        if len(self.lost) > LOST_MAX:
            self.lost.popitem(last=False)
        return True

    def find_oldest(self, position: int) -> Contact | None:
        """Whom a contact at this position would have to replace; None where its bucket has room."""
        bucket = self._buckets.get((position ^ self.position).bit_length(), [])
        return bucket[0] if len(bucket) >= self.size else None

    def find_closest(self, target: int, count: int) -> list[Contact]:
        """The known peers nearest to a place, nearest first."""
        found: list[Contact] = []
        for bucket in self._iterate_buckets_from(target):
            found += sorted(bucket, key=lambda contact: contact.position ^ target)
            if len(found) >= count:
                break
        return sorted(found, key=lambda contact: contact.position ^ target)[:count]

    def _iterate_buckets_from(self, target: int) -> list[list[Contact]]:
        """Groups of contacts, each group nearer to the target than the next.

        Above the bit where the target leaves our own position, a contact differs from the target where it differs from
        us; in the bucket of that bit it agrees with the target there; below, all contacts are alike at that bit.
        """
        split = (target ^ self.position).bit_length()
        below = [contact for size, bucket in self._buckets.items() if size < split for contact in bucket]
        above = [bucket for size, bucket in sorted(self._buckets.items()) if size > split]
        return [self._buckets.get(split, []), below, *above]

    def find_next_hop(self, key: int) -> Contact | None:
        """The closest known peer to the key, if it is closer than this one: None means that this one is the closest."""
        if key not in self._next_hops:
            self._next_hops[key] = self._compute_next_hop(key)
        return self._next_hops[key]

    def _compute_next_hop(self, key: int) -> Contact | None:
        own = key ^ self.position
        split = own.bit_length()
        nearer = self._buckets.get(split)
        candidates = nearer or [contact for size, bucket in self._buckets.items() if size < split for contact in bucket]
        best = min(candidates, key=lambda contact: contact.position ^ key, default=None)
        return best if best is not None and best.position ^ key < own else None
