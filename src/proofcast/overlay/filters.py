"""Many predicates as few: what a peer states upwards stands for everything below it and may only be wider.

Equal and covered predicates fall away and pairs whose union is a predicate are merged, which loses nothing. Only where
more than `limit` remain are pairs widened, step by step more generously, and at last everything is asked for.
The predicates themselves are kept where they came from, so that a withdrawn one uncovers those it covered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from proofcast.overlay.records import format_text
from proofcast.overlay.settings import FILTERS_MAX
from proofcast.routing.predicate import Predicate, covers, merge, widen

GROWTHS = (Decimal(2), Decimal(8), Decimal(64))
"""How much larger than its parts a widened filter may be, in turn: false positives cost bandwidth, not events."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The filters of a statement, in order of their text."""

    filters: tuple[Predicate, ...] = ()
    wants_all: bool = False

    def covers(self, predicates: Iterable[Predicate]) -> bool:
        return self.wants_all or all(any(covers(wide, one) for wide in self.filters) for one in predicates)


def summarise(predicates: Iterable[Predicate], limit: int = FILTERS_MAX) -> Summary:
    filters = reduce_exactly(sorted(set(predicates), key=format_text))
    for growth in GROWTHS:
        if len(filters) > limit:
            filters = reduce_widening(filters, growth)
    return Summary(tuple(sorted(filters, key=format_text))) if len(filters) <= limit else Summary((), wants_all=True)


Names = frozenset[str]
"""The attributes of a predicate: it covers only one that has them all, and merges only with one of the same."""


def get_names(predicate: Predicate) -> Names:
    return frozenset(predicate.by_name)


def reduce_exactly(predicates: Sequence[Predicate]) -> list[Predicate]:
    """Insert one by one; a merged pair is inserted again, because it may now cover or meet others."""
    kept: dict[Names, list[Predicate]] = {}
    waiting = list(reversed(predicates))
    while waiting:
        new = waiting.pop()
        names = get_names(new)
        if any(covers(wide, new) for few, group in kept.items() if few <= names for wide in group):
            continue
        for many in [many for many in kept if many >= names]:
            kept[many] = [narrow for narrow in kept[many] if not covers(new, narrow)]
        group = kept.setdefault(names, [])
        partner = next((one for one in group if merge(one, new) is not None), None)
        if partner is None:
            group.append(new)
        else:
            group.remove(partner)
            waiting.append(require(merge(partner, new)))
    return [predicate for group in kept.values() for predicate in group]


def reduce_widening(predicates: Sequence[Predicate], growth: Decimal) -> list[Predicate]:
    kept: dict[Names, list[Predicate]] = {}
    for new in predicates:
        group = kept.setdefault(get_names(new), [])
        for place, one in enumerate(group):
            wider = widen(one, new, growth)
            if wider is not None:
                group[place] = wider
                break
        else:
            group.append(new)
    return [predicate for group in kept.values() for predicate in group]


def require(predicate: Predicate | None) -> Predicate:
    assert predicate is not None, "merged a moment ago"
    return predicate
