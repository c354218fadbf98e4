"""Why `Exchanges` and its members refuse, in words."""

from proofcast.errors import Reason, Unavailable
from proofcast.onchain.refusal import Refusal

TERMS_HINT = "7 is the delay, 8 the date, 9 the lifetime, 10 the callback gas, 11 the reward, 12 the dead-letter queue"
SEE_EXCHANGE = "`proofcast exchange show` lists what there is"
SEE_QUEUE = "`proofcast queue show` lists what there is"

EXCHANGES_REFUSALS = (
    Refusal(
        "UnknownExchange(bytes32)", "there is no exchange `{0}`", "`proofcast exchange list` shows those that exist"
    ),
    Refusal("UnknownQueue(bytes32)", "there is no queue `{0}`", "`proofcast queue list` shows those that exist"),
    Refusal("NameTaken(bytes32)", "`{0}` exists already", "choose another name"),
    Refusal("WrongName(uint256)", "the name has `{0}` bytes but needs 1 to 128", "choose another name", have=0),
    Refusal("WrongTerms(uint256)", "the contract refuses the field or fee `{0}`", TERMS_HINT, have=0),
    Refusal(
        "WrongKey(uint256)",
        "the key is not well formed at byte `{0}`",
        "binding keys take 1 to 128 of `a-z A-Z 0-9 -`; routing keys `*`, `#` and up to 8 parts divided by `.` besides",
        Reason.BAD_KEY,
        have=0,
    ),
    Refusal(
        "NotTheOwner(address,address)",
        "`{0}` is not the owner `{1}`",
        "use the owner's key",
        Reason.NOT_ALLOWED,
        have=0,
        need=1,
    ),
    Refusal(
        "NotApproved(bytes32,address)",
        "`{1}` may not publish in the exchange `{0}`",
        "ask by `proofcast exchange join`; its owner approves by `proofcast exchange approve`",
        Reason.NOT_ALLOWED,
        have=1,
    ),
    Refusal("AlreadyThere(bytes32)", "this was asked for or approved before at `{0}`", "nothing needs to be done"),
    Refusal("NotRequested(bytes32)", "nobody has asked for this at `{0}`", "the other side asks first"),
    Refusal("NotThere(bytes32)", "there is nothing to remove at `{0}`", SEE_QUEUE),
    Refusal("TooMany(bytes32,uint256)", "`{0}` has `{1}` of them, which is the limit", "use another one", need=1),
    Refusal(
        "MessageTooLong(uint256,uint256)",
        "the payload has `{0}` bytes but may have at most `{1}`",
        "publish its hash, or the place where it is kept",
        have=0,
        need=1,
    ),
    Refusal(
        "ValueTooLow(uint256,uint256)",
        "`{0}` wei came with the message but the exchange takes a fee of `{1}` wei",
        "send it with `--value`",
        have=0,
        need=1,
    ),
    Refusal(
        "TooLittleGas(uint256,uint256)",
        "the call has `{0}` gas, with which not everybody can be served; `{1}` serve as many as fit",
        "bring more gas",
        have=0,
        need=1,
    ),
    Refusal(
        "QueueBusy(bytes32)",
        "the queue `{0}` is inside a delivery or holds messages",
        "try again when they are released",
        Reason.NOT_YET,
        Unavailable,
    ),
    Refusal("NothingHeld(bytes32)", "the queue `{0}` holds no message", "nothing needs to be done"),
    Refusal(
        "WrongMessage(bytes32,bytes32)",
        "this message hashes to `{0}` but it is the turn of `{1}`",
        "give header, key and payload exactly as they are in the logs",
        have=0,
        need=1,
    ),
    Refusal(
        "NotReleasable(bytes32,uint8)",
        "the next message of the queue `{0}` still waits for its condition",
        SEE_QUEUE,
        Reason.NOT_YET,
        Unavailable,
    ),
    Refusal("IsExpired(uint256)", "the message expired at `{0}`", "`proofcast queue expire` gives it up", have=0),
    Refusal(
        "NotExpired(uint256)",
        "the message does not expire before `{0}`",
        "try again then",
        Reason.NOT_YET,
        Unavailable,
        need=0,
    ),
    Refusal("NothingOwed(bytes32)", "nothing is owed to `{0}`", "nothing needs to be done"),
    Refusal(
        "TransferFailed(address,uint256)",
        "`{0}` did not accept a payment of `{1}` wei",
        "name another receiver with `--to`",
        have=0,
    ),
    Refusal(
        "NotExchanges(address,address)",
        "`{0}` is not the contract `{1}` that may bring messages",
        "deploy the subscriber for this `Exchanges`",
        have=0,
        need=1,
    ),
    Refusal("TooManyTargets(uint256)", "messages can be passed on to at most `{0}` exchanges", "name fewer", need=0),
    Refusal("NoSuchForward(bytes32)", "the forward `{0}` is not deferred", "nothing needs to be done"),
    Refusal(
        "NoSuchField(uint256,uint256)", "the payload has `{0}` bytes but the field ends at `{1}`", "choose another word"
    ),
)
