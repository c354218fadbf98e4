"""What a key allows."""

from enum import StrEnum


class Scope(StrEnum):
    READ = "read"
    """Events, streams, states; and the acknowledgement of what was read."""
    MANAGE = "manage"
    """Also subscriptions: made, changed, deleted, redriven."""
