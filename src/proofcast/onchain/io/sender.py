"""Sending transactions so that a retried call never happens twice.

1. Simulated first: what the contract would refuse costs nothing and is explained.
2. Under the key's lock: earlier promises are sent again, the lowest free nonce is taken, the transaction is signed,
   written to the journal and only then sent. A refusal now is final, and the promise forgotten.
3. Waited for; replaced with higher fees, same nonce, where it gets stuck.

Whoever repeats a call with its idempotency key, after whatever crash, continues at the step that was reached: the
signed transaction in the journal is sent again and no other is made, and a transaction has one effect however often it
is sent.
"""

import json
import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from proofcast.chain.io.answers import get_field, parse_bytes, parse_quantity
from proofcast.chain.io.rpc import Json, NodeRefused, RpcClient
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.onchain.abi import format_value
from proofcast.onchain.io.fees import DEFAULT_FEES, FeePolicy, Fees, find_bumped, get_fees
from proofcast.onchain.io.journal import Attempt, Journal, Promise
from proofcast.onchain.io.reading import encode_hex, explain_refusal
from proofcast.onchain.io.receipts import Receipt, parse_receipt
from proofcast.onchain.io.simulation import simulate
from proofcast.onchain.request import Request

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

POLL_S = 0.25
POLL_ON_LOOPBACK_S = 0.02
"""A development chain mines at once and minds no questions."""
NONCE_ATTEMPTS_MAX = 3
"""How often a nonce may turn out to be taken by another program before we give up."""
NONCE_WORDS = ("nonce too low", "nonce is too low", "oldnonce", "invalid nonce")
"""How nodes say that a nonce is used up; there is no code for it."""


class Stage(StrEnum):
    """How far a transaction has come."""

    JOURNALLED = "journalled"
    SENT = "sent"
    REPLACED = "replaced"
    MINED = "mined"


def watch_nothing(stage: Stage, transaction_hash: bytes) -> None:
    """Nobody wants to know."""


class Sender:
    """Sends for one key on one chain; several threads and processes may do so at once."""

    def __init__(
        self,
        rpc: RpcClient,
        account: "LocalAccount",
        state_folder: Path,
        *,
        fees: FeePolicy = DEFAULT_FEES,
        watch: Callable[[Stage, bytes], None] = watch_nothing,
    ) -> None:
        chain_id, genesis = rpc.batch([("eth_chainId", []), ("eth_getBlockByNumber", ["0x0", False])])
        self.rpc = rpc
        self.address = parse_bytes(account.address)
        self.chain_id = parse_quantity(chain_id)
        self._account, self._fees, self._watch = account, fees, watch
        self._journal = Journal(state_folder, parse_bytes(get_field(genesis, "hash")), self.address)
        self._poll_s = POLL_ON_LOOPBACK_S if rpc.host.startswith(("127.", "localhost")) else POLL_S

    def send(self, request: Request, idempotency_key: str) -> Receipt:
        """Have it mined, once; the same key again gives the same receipt."""
        return self.send_planned(lambda: request, request.compute_intent(), idempotency_key)

    def send_planned(self, plan: Callable[[], Request], intent: bytes, idempotency_key: str) -> Receipt:
        """Like `send`, for a request that depends on the chain's state: it is planned once, and the intent stays."""
        known = self._journal.find(idempotency_key)
        promise = known or self._promise(plan(), intent, idempotency_key)
        if promise.intent != intent:
            raise refuse_key(idempotency_key)
        if known and not self._find_receipt(known):
            self._broadcast(known.attempts[-1])
        return self._conclude(self._await(promise))

    def get_fees(self) -> Fees:
        return get_fees(self.rpc, self._fees)

    def _promise(self, request: Request, intent: bytes, key: str) -> Promise:
        """Simulate; then take a nonce, write the promise down and send it, while nobody else of this key does so."""
        fees = self.get_fees()
        gas_limit = simulate(self.rpc, self.address, request, fees)
        for _ in range(NONCE_ATTEMPTS_MAX):
            with self._journal.hold():
                existing = self._journal.find(key)
                if existing:
                    return existing
                self._resume()
                sign = partial(self._sign, request, gas_limit, fees)
                promise = self._journal.open_promise(key, intent, request, self._count("pending"), sign)
                self._watch(Stage.JOURNALLED, promise.attempts[-1].hash)
                refused = self._broadcast(promise.attempts[-1])
                if refused is None:
                    self._watch(Stage.SENT, promise.attempts[-1].hash)
                    return promise
                self._journal.forget(promise)
            if not is_nonce_refusal(refused):
                raise explain_refusal(refused) from refused
        raise Unavailable(
            Reason.NOT_YET,
            f"another program keeps taking the nonces of `{format_value(self.address)}`",
            hint="try again when it rests, or use a key of your own",
        )

    def _resume(self) -> None:
        """Send again what earlier calls promised and the chain lacks, so that no nonce is missing below ours."""
        count = self._count("latest")
        for promise in self._journal.list_unsettled(count):
            if self._find_receipt(promise):
                continue
            if promise.nonce < count:
                self._journal.mark_lost(promise)
            else:
                self._broadcast(promise.attempts[-1])

    def _count(self, block: str) -> int:
        """Transactions that the chain has of this key."""
        return parse_quantity(self.rpc.call("eth_getTransactionCount", encode_hex(self.address), block))

    def _sign(self, request: Request, gas_limit: int, fees: Fees, nonce: int) -> Attempt:
        transaction: dict[str, Json] = {
            "type": 2,
            "chainId": self.chain_id,
            "nonce": nonce,
            "to": request.to or b"",
            "data": request.data,
            "value": request.value,
            "gas": gas_limit,
            "maxFeePerGas": fees.max_fee,
            "maxPriorityFeePerGas": fees.tip,
        }
        signed = self._account.sign_transaction(transaction)
        return Attempt(bytes(signed.hash), bytes(signed.raw_transaction), gas_limit, fees.max_fee, fees.tip)

    def _broadcast(self, attempt: Attempt) -> NodeRefused | None:
        """Hand it to the node; what the node has already is no refusal."""
        try:
            self.rpc.call("eth_sendRawTransaction", encode_hex(attempt.raw))
        except NodeRefused as refused:
            return None if self.rpc.call("eth_getTransactionByHash", encode_hex(attempt.hash)) else refused
        return None

    def _await(self, promise: Promise) -> Receipt:
        """The receipt of one of the attempts; more is offered as time goes by."""
        started = sent = time.monotonic()
        is_used = False
        while True:
            receipt = self._find_receipt(promise) or (self._find_forgotten(promise) if is_used else None)
            if receipt:
                return receipt
            # A node may count the nonce before it has the receipt: only at the next look it is somebody else's.
            is_used = self._count("latest") > promise.nonce
            now = time.monotonic()
            if now - started >= self._fees.wait_s_max:
                raise refuse_to_wait(promise)
            if now - sent >= self._fees.replace_after_s:
                promise, sent = self._replace(promise), now
            time.sleep(self._poll_s)

    def _replace(self, promise: Promise) -> Promise:
        """Offer more for the same nonce, if that is allowed."""
        last = promise.attempts[-1]
        fees = find_bumped(last.max_fee_wei, last.tip_wei, self.get_fees(), self._fees)
        if fees is None:
            return promise
        attempt = self._sign(promise.request, last.gas_limit, fees, promise.nonce)
        self._journal.add_attempt(promise, attempt)
        self._broadcast(attempt)
        self._watch(Stage.REPLACED, attempt.hash)
        return promise.with_attempt(attempt)

    def _find_receipt(self, promise: Promise) -> Receipt | None:
        """The receipt of whichever attempt is mined."""
        requests = [("eth_getTransactionReceipt", [encode_hex(attempt.hash)]) for attempt in promise.attempts]
        answer = next(filter(None, self.rpc.batch(requests)), None)
        if answer is None:
            return None
        receipt = parse_receipt(answer, self.chain_id)
        self._watch(Stage.MINED, receipt.transaction_hash)
        self._journal.keep_receipt(promise, json.dumps(answer))
        return receipt

    def _find_forgotten(self, promise: Promise) -> Receipt | None:
        """Where the nonce is used up: the receipt we kept of what the node forgot, or the news that it was not us."""
        if self._count("latest") <= promise.nonce:
            return None
        if promise.receipt:
            return parse_receipt(json.loads(promise.receipt), self.chain_id)
        receipt = self._find_receipt(promise)
        if receipt is None:
            self._journal.mark_lost(promise)
            raise refuse_lost(promise)
        return receipt

    def _conclude(self, receipt: Receipt) -> Receipt:
        if not receipt.succeeded:
            raise InvalidRequest(
                Reason.REVERTED,
                f"the transaction `{encode_hex(receipt.transaction_hash)}` reverted after `{receipt.gas_used}` gas",
                hint="the state changed after it was simulated; look at the topic, then call again with a new key",
            )
        return receipt


def refuse_key(key: str) -> InvalidRequest:
    return InvalidRequest(
        Reason.BAD_ARGUMENT,
        f"the idempotency key `{key}` belongs to a different call",
        hint="use a new key for a new call",
    )


def refuse_lost(promise: Promise) -> InvalidRequest:
    return InvalidRequest(
        Reason.REVERTED,
        f"another program used the nonce `{promise.nonce}` of this call, which will never be mined",
        hint="make sure that it is not on the chain, then call again with a new idempotency key",
    )


def refuse_to_wait(promise: Promise) -> Unavailable:
    return Unavailable(
        Reason.NOT_YET,
        f"the transaction `{encode_hex(promise.attempts[-1].hash)}` is not mined yet",
        hint=f"repeat the call with `--idempotency-key {promise.key}`: it goes on waiting and never sends twice",
    )


def is_nonce_refusal(refused: NodeRefused) -> bool:
    return any(word in refused.node_message.lower() for word in NONCE_WORDS)
