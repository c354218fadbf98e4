"""One custom error of a contract as a sentence with its values, and what to do next."""

from dataclasses import dataclass

from proofcast.errors import InvalidRequest, ProofcastError, Reason, Unavailable
from proofcast.onchain.abi import format_value


@dataclass(frozen=True, slots=True)
class Refusal:
    """One custom error; `{0}`, `{1}` in the sentence are its arguments, `have` and `need` say which compare."""

    signature: str
    sentence: str
    hint: str
    reason: Reason = Reason.REVERTED
    kind: type[InvalidRequest] | type[Unavailable] = InvalidRequest
    have: int | None = None
    need: int | None = None

    def explain(self, *values: object) -> ProofcastError:
        shown = [format_value(value) for value in values]
        return self.kind(
            self.reason,
            self.sentence.format(*shown),
            hint=self.hint.format(*shown),
            have=pick(values, self.have),
            need=pick(values, self.need),
        )


def pick(values: tuple[object, ...], position: int | None) -> int | str | None:
    value = None if position is None else values[position]
    return value if value is None or isinstance(value, int) else format_value(value)
