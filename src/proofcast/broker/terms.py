"""The terms of a subscription as requests and the store write them."""

from collections.abc import Mapping
from enum import StrEnum

from proofcast.broker.selection import format_selection, parse_selection
from proofcast.broker.subscription import (
    BATCH_SIZE_DEFAULT,
    BATCH_SIZE_MAX,
    NAME,
    OPTION_LENGTH_MAX,
    OPTIONS_MAX,
    SECRETS_MAX,
    Ordering,
    Terms,
    Transport,
)
from proofcast.errors import InvalidRequest, Reason
from proofcast.event import Finality


def parse_name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise refuse(
            f"`{ascii(text[:80])[1:-1]}` is no name of a subscription",
            "write up to 64 of a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit",
        )
    return text


def format_terms(terms: Terms) -> dict[str, object]:
    """Everything but the secrets."""
    return {
        "filter": format_selection(terms.selection),
        "finality": str(terms.finality),
        "transport": str(terms.transport),
        "batch_size": terms.batch_size,
        "ordering": str(terms.ordering),
        "options": dict(terms.options),
    }


TERMS_FIELDS = frozenset({"filter", "finality", "transport", "batch_size", "ordering", "options", "secrets"})


def parse_terms(found: Mapping[str, object]) -> Terms:
    """From JSON; what is not given has its default."""
    unknown = found.keys() - TERMS_FIELDS
    if unknown:
        raise refuse(
            f"`{ascii(min(unknown)[:64])[1:-1]}` is no field of a subscription",
            f"known are {', '.join(sorted(TERMS_FIELDS))}",
        )
    size = found.get("batch_size", BATCH_SIZE_DEFAULT)
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= BATCH_SIZE_MAX:
        raise refuse(f"`{ascii(size)[:64]}` is no batch size", f"write a number from 1 to {BATCH_SIZE_MAX}")
    return Terms(
        selection=parse_selection(parse_words("filter", found.get("filter", {}))),
        finality=Finality(parse_word("finality", found.get("finality", "latest"), Finality)),
        transport=Transport(parse_word("transport", found.get("transport", "pull"), Transport)),
        batch_size=size,
        ordering=Ordering(parse_word("ordering", found.get("ordering", "topic"), Ordering)),
        options=parse_words("options", found.get("options", {})),
        secrets=parse_secrets(found.get("secrets", [])),
    )


def parse_word(what: str, found: object, known: type[StrEnum]) -> str:
    if not isinstance(found, str) or found not in list(known):
        raise refuse(f"`{ascii(found)[:64]}` is no {what}", f"known are {', '.join(known)}")
    return found


def parse_words(what: str, found: object) -> dict[str, str]:
    if not isinstance(found, dict) or len(found) > OPTIONS_MAX:
        raise refuse(f"`{what}` is no object of at most `{OPTIONS_MAX}` fields", "write names and values as text")
    for value in found.values():
        if not isinstance(value, str) or len(value) > OPTION_LENGTH_MAX:
            raise refuse(
                f"a value of `{what}` is no text of at most `{OPTION_LENGTH_MAX}` characters",
                "write names and values as text",
            )
    return dict(found)


def parse_secrets(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or len(found) > SECRETS_MAX or not all(isinstance(one, str) for one in found):
        raise refuse(
            f"`secrets` is no list of at most `{SECRETS_MAX}` texts", "newest first; see the guide to webhooks"
        )
    return tuple(found)


def refuse(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)
