"""A topic's policy and a subscriber's terms: packed exactly like the contract's `Policy` and `Terms`."""

from dataclasses import dataclass
from enum import IntEnum

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.onchain.abi import build_from

UINT8_MAX = (1 << 8) - 1
UINT24_MAX = (1 << 24) - 1
UINT31_MAX = (1 << 31) - 1
UINT32_MAX = (1 << 32) - 1
UINT39_MAX = (1 << 39) - 1


class Access(IntEnum):
    """Who may publish, or subscribe."""

    LISTED = 0
    """The owner and those it lists."""
    ASKED = 1
    """The owner contract answers each time."""
    OPEN = 2


@dataclass(frozen=True, slots=True)
class Field:
    """Where a number sits in a packed word and what it may be."""

    name: str
    shift: int
    width: int
    least: int
    most: int

    def check(self, value: int) -> None:
        if not self.least <= value <= self.most:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`{self.name}` is `{value}` but must lie between `{self.least}` and `{self.most}`",
                hint="choose a value within the bounds",
                have=value,
                need=self.least if value < self.least else self.most,
            )

    def get(self, word: int) -> int:
        return word >> self.shift & (1 << self.width) - 1


POLICY_FIELDS = (
    Field("callback_gas", 0, 24, 1, 8_000_000),
    Field("reward_gwei", 24, 32, 0, UINT32_MAX),
    Field("deposit_floor_gwei", 56, 32, 0, 10_000_000),
    Field("base_gas", 88, 24, 0, UINT24_MAX),
    Field("publisher_gas", 112, 24, 0, UINT24_MAX),
    Field("token_gas", 136, 8, 0, UINT8_MAX),
    Field("floor_token_gas", 144, 8, 0, UINT8_MAX),
    Field("tip_cap_mwei", 152, 32, 0, UINT32_MAX),
    Field("data_fee_mwei", 184, 32, 0, UINT32_MAX),
    Field("publishing", 216, 2, 0, 2),
    Field("subscribing", 218, 2, 0, 2),
)
SET_BIT = 220
"""Tells a policy of zeros from the word 0, which stands for the default policy."""

# The bit above price and above share stays free: there the contract sees that one is exceeded.
TERMS_FIELDS = (
    Field("callback_gas", 0, 24, 0, UINT24_MAX),
    Field("max_price_mwei", 24, 31, 0, UINT31_MAX),
    Field("max_share_gwei", 56, 39, 0, UINT39_MAX),
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a topic demands and allows; the defaults are the contract's."""

    callback_gas: int = 200_000
    """Most gas a subscriber may reserve for its callback."""
    reward_gwei: int = 0
    """What each served subscriber pays per event on top of gas."""
    deposit_floor_gwei: int = 10_000
    """A subscriber below it is removed before the next call."""
    base_gas: int = 22_300
    """Gas of a publish outside the contract's sight: intrinsic gas and the fixed calldata."""
    publisher_gas: int = 3_000
    """Gas a publisher contract spends before and after it calls; an account that publishes directly spends none."""
    token_gas: int = 4
    """Gas per token of payload calldata; 0 where the payload is made on chain."""
    floor_token_gas: int = 10
    """Gas per token of EIP-7623's floor; 0 where the payload is made on chain."""
    tip_cap_mwei: int = 3_000
    """Price above the base fee that subscribers pay at most; 1 mwei is 1e6 wei."""
    data_fee_mwei: int = 0
    """Per payload byte, shared by the served: a rollup's data fee."""
    publishing: Access = Access.LISTED
    subscribing: Access = Access.OPEN

    def __post_init__(self) -> None:
        for field in POLICY_FIELDS:
            field.check(getattr(self, field.name))

    def pack(self) -> int:
        return 1 << SET_BIT | pack_fields(POLICY_FIELDS, self)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a subscriber accepts."""

    callback_gas: int
    """Exact gas of each callback."""
    max_price_mwei: int
    """Most it pays for gas; 1 mwei is 1e6 wei."""
    max_share_gwei: int
    """Most it pays per event beyond its own gas: reward, base gas, data fee."""

    def __post_init__(self) -> None:
        for field in TERMS_FIELDS:
            field.check(getattr(self, field.name))

    def pack(self) -> int:
        return pack_fields(TERMS_FIELDS, self)


def pack_fields(layout: tuple[Field, ...], record: Policy | Terms) -> int:
    word: int = 0
    for field in layout:
        word |= getattr(record, field.name) << field.shift
    return word


def parse_policy(word: int) -> Policy:
    """A policy as the contract stores it; 0 stands for the default."""
    if word == 0:
        return Policy()
    if word >> SET_BIT != 1:
        raise refuse_word("policy", word)
    *numbers, publishing, subscribing = (field.get(word) for field in POLICY_FIELDS)
    try:
        access = [Access(publishing), Access(subscribing)]
        return build_from(Policy, [*numbers, *access])
    except (ValueError, InvalidRequest) as error:
        raise refuse_word("policy", word) from error


def parse_terms(word: int) -> Terms:
    """Terms as the contract stores them."""
    terms = Terms(*(field.get(word) for field in TERMS_FIELDS))
    if terms.pack() != word:
        raise refuse_word("terms", word)
    return terms


def refuse_word(what: str, word: int) -> InvalidInput:
    return InvalidInput(
        Reason.MALFORMED,
        f"`{word:#x}` is no {what} that the contract accepts",
        hint="check that the address is that of the contract and the node is on the right network",
    )
