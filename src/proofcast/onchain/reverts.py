"""Why a contract refused: custom errors as one sentence with both values, and what to do next."""

from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Reason, Unavailable
from proofcast.onchain.abi import SELECTOR_LENGTH, compute_selector, decode_values
from proofcast.onchain.exchange_refusals import EXCHANGES_REFUSALS
from proofcast.onchain.policy import parse_policy, parse_terms
from proofcast.onchain.refusal import Refusal

WEI_PER_MWEI = 10**6


class TermsRefusal(Refusal):
    """Terms that fit neither policy nor base fee: the contract hands over all three, we say which is too little."""

    def explain(self, *values: object) -> ProofcastError:
        terms, policy = parse_terms(int(str(values[0]))), parse_policy(int(str(values[1])))
        base_fee = int(str(values[2]))
        have, need, what, bound = terms.callback_gas, policy.callback_gas, "gas per callback", "between 1 and"
        if terms.max_share_gwei < policy.reward_gwei:
            have, need, what, bound = terms.max_share_gwei, policy.reward_gwei, "gwei per event", "at least"
        elif terms.max_price_mwei * WEI_PER_MWEI < base_fee:
            have, need, what, bound = terms.max_price_mwei * WEI_PER_MWEI, base_fee, "wei per gas", "at least"
        message = self.sentence.format(have, need, what, bound)
        return self.kind(self.reason, message, hint=self.hint, have=have, need=need)


TOPICS_REFUSALS = (
    Refusal(
        "UnknownTopic(bytes32)",
        "there is no topic `{0}`",
        "`proofcast topic list` shows those that exist",
        Reason.UNKNOWN_TOPIC,
    ),
    Refusal("TopicExists(bytes32)", "the topic `{0}` exists already", "choose another name"),
    Refusal("BadName(uint256)", "the name has `{0}` bytes but needs 1 to 128", "choose another name", have=0),
    Refusal(
        "BadPolicy(uint256)", "the contract refuses the policy `{0}`", "keep every field within the documented bounds"
    ),
    TermsRefusal(
        "BadTerms(uint96,uint256,uint256)",
        "the terms offer `{0}` {2} but the topic needs {3} `{1}`",
        "`proofcast topic show` lists what the topic demands",
    ),
    Refusal(
        "NotOwner(address,address)",
        "`{0}` is not the owner `{1}`",
        "use the owner's key",
        Reason.NOT_ALLOWED,
        have=0,
        need=1,
    ),
    Refusal(
        "NotAllowed(bytes32,address)",
        "`{1}` may not do this on the topic `{0}`",
        "its owner can list the account: `proofcast topic publisher`",
        Reason.NOT_ALLOWED,
        have=1,
    ),
    Refusal(
        "NotSubscriber(address,address)",
        "`{0}` is not the subscriber `{1}`",
        "use the subscriber's key, or `--via` where it is a contract",
        Reason.NOT_ALLOWED,
        have=0,
        need=1,
    ),
    Refusal(
        "NotSubscribed(bytes32,uint256)",
        "nobody holds the index `{1}` of the topic `{0}`",
        "`proofcast topic show` lists the subscriptions",
        have=1,
    ),
    Refusal(
        "DepositTooLow(uint256,uint256)",
        "the deposit is `{0}` gwei but must be at least `{1}` gwei",
        "send at least {1} gwei",
        have=0,
        need=1,
    ),
    Refusal(
        "DepositTooHigh(uint256,uint256)",
        "the deposit is `{0}` gwei but may be at most `{1}` gwei",
        "send less",
        have=0,
        need=1,
    ),
    Refusal(
        "PayloadTooLong(uint256,uint256)",
        "the payload has `{0}` bytes but may have at most `{1}`",
        "publish its hash, or the place where it is kept",
        have=0,
        need=1,
    ),
    Refusal("NotWholeGwei(uint256)", "`{0}` wei is no whole number of gwei", "round it to 1000000000 wei", have=0),
    Refusal(
        "StaleSequence(uint256,uint256)",
        "the next event is number `{1}` but `{0}` was expected",
        "look at what was published meanwhile, then expect {1} or drop the expectation",
        Reason.STALE_SEQUENCE,
        have=0,
        need=1,
    ),
    Refusal(
        "NotEnoughGas(uint256,uint256)",
        "the call has `{0}` gas but needs `{1}`",
        "`proofcast topic quote` gives the gas limit",
        have=0,
        need=1,
    ),
    Refusal(
        "Delivering(bytes32)",
        "the topic `{0}` is inside a delivery",
        "try again when that transaction has ended",
        Reason.NOT_YET,
        Unavailable,
    ),
    Refusal(
        "PagesPending(bytes32,uint256,uint256)",
        "event `{1}` of the topic `{0}` still has pages to deliver, from position `{2}`",
        "deliver them first: `proofcast topic deliver`",
        Reason.NOT_YET,
        Unavailable,
    ),
    Refusal("NothingPending(bytes32)", "the topic `{0}` has no page to deliver", "nothing needs to be done"),
    Refusal(
        "WrongEvent(bytes32,bytes32)",
        "this key and payload hash to `{0}` but the pending event is `{1}`",
        "give key and payload exactly as they were published",
        have=0,
        need=1,
    ),
    Refusal("NothingToSeal(bytes32)", "the topic `{0}` has nothing to seal", "whole words of eight records are sealed"),
    Refusal("PageNotCreated()", "a page of sealed subscriptions could not be created", "send the call with more gas"),
    Refusal("NothingToCollect(address)", "nothing is owed to `{0}`", "nothing needs to be done"),
    Refusal(
        "PaymentFailed(address,uint256)",
        "`{0}` did not accept a payment of `{1}`",
        "name another receiver with `--to`",
        have=0,
    ),
)

LENS_REFUSALS = (
    Refusal(
        "NoSuchPosition(uint256,uint256)",
        "an event of a list that ends at `{1}` has no position `{0}`",
        "positions run from 0 to the end of the list, filled up to words of eight",
    ),
)

SIGNED_PUBLISHER_REFUSALS = (
    Refusal("ZeroSigner()", "the signer is the zero address", "name the account or contract that signs"),
    Refusal(
        "UnusablePolicy(uint256)",
        "a signed topic cannot have the policy `{0}`",
        "leave publishing `listed` and subscribing `open`",
    ),
    Refusal(
        "SequenceInFuture(uint256,uint256)",
        "the publication is number `{0}` but the next event is number `{1}`",
        "relay the earlier publications first",
        Reason.NOT_YET,
        Unavailable,
        have=0,
        need=1,
    ),
    Refusal(
        "Expired(uint256,uint256)",
        "the time is `{0}` but the publication had to be relayed by `{1}`",
        "ask the signer for one with a later deadline",
        have=0,
        need=1,
    ),
    Refusal(
        "WrongSigner(address,address)",
        "the signature is by `{0}` but must be by `{1}`",
        "check the publication's chain, contract and fields; each is part of what was signed",
        Reason.NOT_ALLOWED,
        have=0,
        need=1,
    ),
)

SUBSCRIBER_REFUSALS = (
    Refusal(
        "NotTopics(address,address)",
        "`{0}` is not the contract `{1}` that may bring events",
        "deploy the subscriber for this `Topics`",
        have=0,
        need=1,
    ),
    Refusal(
        "NotAccepted(bytes32)", "the subscriber does not accept the topic `{0}`", "see which topics its code accepts"
    ),
)

STANDARD_REFUSALS = (
    Refusal("Error(string)", "the contract refused with `{0}`", "check the arguments"),
    Refusal("Panic(uint256)", "the contract stopped with panic code `{0}`", "check the arguments"),
)

REFUSAL_BY_SELECTOR = {
    compute_selector(refusal.signature): refusal
    for refusal in (
        *TOPICS_REFUSALS,
        *LENS_REFUSALS,
        *SIGNED_PUBLISHER_REFUSALS,
        *SUBSCRIBER_REFUSALS,
        *EXCHANGES_REFUSALS,
        *STANDARD_REFUSALS,
    )
}


def decode_revert(data: bytes) -> ProofcastError:
    """The error behind a contract's revert data."""
    refusal = REFUSAL_BY_SELECTOR.get(data[:SELECTOR_LENGTH])
    if refusal is None:
        return get_unknown(data)
    types = refusal.signature[refusal.signature.index("(") :]
    try:
        return refusal.explain(*decode_values(types, data[SELECTOR_LENGTH:]))
    except InvalidInput:
        return get_unknown(data)


def get_unknown(data: bytes) -> ProofcastError:
    shown = f"`0x{data[:64].hex()}`" if data else "no reason"
    return InvalidRequest(
        Reason.REVERTED,
        f"the contract refused with {shown}",
        hint="check the arguments, and that the address is that of the contract",
    )
