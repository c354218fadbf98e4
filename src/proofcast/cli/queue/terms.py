"""A queue's terms: from the options of a command line, and in words."""

from proofcast.cli.values import refuse
from proofcast.onchain import queues
from proofcast.onchain.abi import format_value
from proofcast.onchain.queues import Condition, Queue, QueueTerms


def choose_condition(
    waits_for_time: bool,
    topic: bytes | None,
    gauge: bytes | None,
    above: int | None,
    below: int | None,
    account: bytes | None,
) -> tuple[Condition, bytes]:
    """The one condition that was named, and what it is about."""
    if (gauge is None) == (above is not None or below is not None) or (above is not None and below is not None):
        raise refuse("`--gauge` goes with one of `--above` and `--below`", "name the gauge and one value")
    named = [
        (Condition.TIME, queues.NO_SUBJECT) if waits_for_time else None,
        (Condition.EVENT, topic) if topic else None,
        (Condition.ABOVE if above is not None else Condition.BELOW, bytes(12) + gauge) if gauge else None,
        (Condition.ACCOUNT, bytes(12) + account) if account else None,
    ]
    conditions = [each for each in named if each is not None]
    if len(conditions) > 1:
        raise refuse(f"`{len(conditions)}` conditions were given", "a queue waits for one of them")
    return conditions[0] if conditions else (Condition.AT_ONCE, queues.NO_SUBJECT)


def describe_queue(queue_id: bytes, state: Queue) -> dict[str, str]:
    terms = state.terms
    opens = {"bind": terms.open_binding, "subscribe": terms.open_subscribing, "share value": terms.open_value}
    return {
        "queue": format_value(queue_id),
        "owner": format_value(state.owner),
        "anybody may": ", ".join(word for word, is_open in opens.items() if is_open) or "nothing without approval",
        "released": describe_condition(terms),
        "order": "newest first" if terms.lifo else "oldest first",
        "expiry": f"after {terms.lifetime_s} seconds",
        "dead letters": format_value(terms.dead_letter) if any(terms.dead_letter) else "none",
        "callback": f"{terms.callback_gas} gas",
        "messages": str(state.messages),
        "held": f"{state.held}" + (", and one half delivered" if state.pending else ""),
        "held value": f"{state.held_value_wei} wei",
        "fund": f"{state.fund_wei} wei, of which {terms.reward_wei} go to who releases a message",
    }


def describe_condition(terms: QueueTerms) -> str:
    account = format_value(terms.subject[12:])
    return {
        Condition.AT_ONCE: "at once",
        Condition.TIME: f"{terms.delay_s} seconds after arrival, not before {terms.not_before}",
        Condition.EVENT: f"after an event of the topic {format_value(terms.subject)}",
        Condition.ABOVE: f"when the gauge {account} shows more than {terms.threshold}",
        Condition.BELOW: f"when the gauge {account} shows less than {terms.threshold}",
        Condition.ACCOUNT: f"by the account {account}",
    }[terms.condition]
