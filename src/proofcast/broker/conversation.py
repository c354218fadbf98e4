"""What a WebSocket's two ends may say to each other, and when.

The words are those of Hyperledger FireFly, so that its clients find their way. Every message is one JSON object:

    subscriber                                           broker
    start {name}                                  ->
    start {ephemeral, name, filter, options}      ->
                                                  <-     event_batch {id, subscription, events}
    ack {id, subscription}                        ->     (the next batch, not before)
    nack {id, subscription}                       ->     (the same batch again, marked repeated)
                                                  <-     heartbeat, rewind {subscription, block}
                                                  <-     protocol_error {error, reason, hint}, and the end

- `start` with a name alone goes on with a subscription that was created before and keeps its place. With `ephemeral` it
  lives as long as the connection; the id of a batch is a cursor, from which a later `start` may go on (`firstEvent`).
- One batch per subscription is under way, of at most `readAhead` events: a subscriber that does not acknowledge gets
  nothing more, and nobody waits for it. With `autoack` sending counts as acknowledgement.
- Several subscriptions may be started, each with its name; whoever has one may leave `subscription` out of `ack`.
- A `start` may be written into the address instead: `?ephemeral&filter.topic=flights&firstEvent=oldest&autoack`.
- Whatever cannot be understood ends the connection: guessing what a peer meant loses events.
"""

from dataclasses import dataclass, field

from proofcast.broker.messages import (
    FIELDS,
    Begin,
    Fields,
    get_text,
    parse_begin,
    refuse,
    shorten,
    verify_known,
)

MESSAGE_BYTES_MAX = 16 * 1024
"""Of what a subscriber says; its longest word is a filter."""
STARTED_MAX = 64
"""Subscriptions of one connection: each may hold one batch."""


@dataclass(frozen=True, slots=True)
class Settle:
    """The batch under way was acknowledged, or is wanted again."""

    name: str
    id: str
    is_acknowledged: bool


Output = Begin | Settle


@dataclass(slots=True)
class Conversation:
    """One connection: what was started on it and which batch of each is under way."""

    _under_way: dict[str, str] = field(default_factory=dict)
    """Name of a subscription to the id of its batch; empty where none is."""

    def receive(self, message: Fields) -> Output:
        """What the subscriber wants; refused where it is not understood, or not possible now."""
        kind = message.get("type")
        if not isinstance(kind, str) or kind not in FIELDS:
            raise refuse(f"`{shorten(kind)}` is no type of message", f"known are {', '.join(FIELDS)}")
        verify_known(kind, message, FIELDS[kind])
        return self._start(message) if kind == "start" else self._settle(message, kind == "ack")

    def offer(self, name: str, batch_id: str) -> None:
        """Note that a batch is under way."""
        assert not self._under_way[name], (name, self._under_way[name])
        self._under_way[name] = batch_id

    def _start(self, message: Fields) -> Begin:
        begin = parse_begin(message)
        if begin.name in self._under_way:
            raise refuse(f"`{begin.name}` was started before", "give each subscription a name of its own")
        if len(self._under_way) >= STARTED_MAX:
            raise refuse(f"`{STARTED_MAX}` subscriptions were started before", "open another connection")
        self._under_way[begin.name] = ""
        return begin

    def _settle(self, message: Fields, is_acknowledged: bool) -> Settle:
        name = self._find_name(message.get("subscription"))
        batch_id, expected = get_text(message, "id"), self._under_way[name]
        if not expected or batch_id != expected:
            raise refuse(
                f"the batch under way is `{expected or 'none'}`, not `{shorten(batch_id)}`",
                "acknowledge each batch once, by its id",
            )
        self._under_way[name] = ""
        return Settle(name, batch_id, is_acknowledged)

    def _find_name(self, subscription: object) -> str:
        if subscription is None and len(self._under_way) == 1:
            return next(iter(self._under_way))
        name = subscription.get("name") if isinstance(subscription, dict) else None
        if not isinstance(name, str) or name not in self._under_way:
            raise refuse(f"`{shorten(name)}` was not started here", 'say which: `"subscription": {"name": ...}`')
        return name
