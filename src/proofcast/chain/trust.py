"""How much a block is believed, in one word that travels with it.

- `linked`: its hash ties it to what we hold; a node said that it is the chain's.
- `agreed`: as many of the configured nodes as were demanded gave the same hash, or that of a descendant.
- `sealed`: the chain's own consensus was verified.

None of them says that the bytes are what the hash commits to: that is checked for every block, or there is no block.
"""

from enum import StrEnum

from proofcast.errors import Reason, Unavailable


class Trust(StrEnum):
    """Weakest first; compare with `reaches`, since strings compare by their letters."""

    LINKED = "linked"
    AGREED = "agreed"
    SEALED = "sealed"

    def reaches(self, demanded: "Trust") -> bool:
        words = list(Trust)
        return words.index(self) >= words.index(demanded)


def verify_trust(have: Trust, demanded: Trust) -> None:
    if not have.reaches(demanded):
        raise Unavailable(
            Reason.NOT_YET,
            f"the block is `{have}`, not yet `{demanded}`",
            hint="ask several nodes (`2 of URL,URL,URL`), or demand less",
            have=have,
            need=demanded,
        )
