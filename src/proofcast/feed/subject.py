"""What a subscriber names: a topic, an exchange or a queue.

`flights` is a topic; `exchange/colours` an exchange and `queue/blue` a queue, each by name with `*` and `?`, or by id.
A topic may be called `exchange/colours` as well, by anybody: it is meant by its id alone.
"""

from enum import StrEnum


class Kind(StrEnum):
    TOPIC = "topic"
    EXCHANGE = "exchange"
    """Messages that were published to it."""
    QUEUE = "queue"
    """Messages of any exchange that reached it in the transaction that published them."""


def split_subject(text: str) -> tuple[Kind, str]:
    """Of which kind it is, and its id or name."""
    kind, slash, rest = text.partition("/")
    if slash and kind in (Kind.EXCHANGE, Kind.QUEUE):
        return Kind(kind), rest
    return Kind.TOPIC, text


def join_subject(kind: Kind, text: str) -> str:
    return text if kind is Kind.TOPIC else f"{kind}/{text}"
