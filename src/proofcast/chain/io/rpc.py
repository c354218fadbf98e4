"""The project's one JSON-RPC client: HTTP, single calls and batches.

- Every request has a deadline; a node that cannot be reached, answers with a server error or asks us to slow down is
  `Unavailable`.
- Only methods that are safe to repeat are repeated, with growing random pauses so that many clients do not return in
  step. A transaction is never sent twice by this module.
- A node's own error object becomes `NodeRefused`, which keeps the revert data for whoever knows the contract.
- An endpoint's path and query often hold an access key: messages name its host only.
"""

import itertools
import random
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import orjson

from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable

Json = Any
"""Whatever a node answered, before anybody has looked at it."""

TIMEOUT_S = 20.0
"""A log query over many blocks takes seconds on public nodes; a minute would look like a hang."""
ATTEMPTS_MAX = 3
PAUSE_S = 0.2
"""First pause between attempts; doubles each time and is drawn between half and all of it."""
MESSAGE_LENGTH_MAX = 200
"""Characters of a node's own words that we repeat; some nodes answer with whole pages of HTML."""

REPEATABLE_METHODS = frozenset(
    {
        "debug_getRawHeader",
        "debug_getRawReceipts",
        "eth_blockNumber",
        "eth_call",
        "eth_chainId",
        "eth_estimateGas",
        "eth_feeHistory",
        "eth_gasPrice",
        "eth_getBalance",
        "eth_getBlockByHash",
        "eth_getBlockByNumber",
        "eth_getBlockReceipts",
        "eth_getCode",
        "eth_getLogs",
        "eth_getStorageAt",
        "eth_getTransactionByHash",
        "eth_getTransactionCount",
        "eth_getTransactionReceipt",
        "eth_maxPriorityFeePerGas",
        "net_version",
        "web3_clientVersion",
    }
)

BUSY_CODES = frozenset({-32005, -32016, 429})
"""Codes by which nodes say `too many requests`; there is no standard one."""
BUSY_STATUSES = frozenset({429, 500, 502, 503, 504})


class NodeRefused(InvalidRequest):
    """The node understood the request and refused it; `data` is what a reverting contract said."""

    def __init__(self, host: str, method: str, code: int, message: str, data: bytes) -> None:
        super().__init__(
            Reason.REVERTED if data else Reason.BAD_ARGUMENT,
            f"the node at `{host}` refused `{method}` with `{shorten(message)}` (code `{code}`)",
            hint="check the arguments and that the node serves this method",
        )
        self.code = code
        self.node_message = message
        self.data = data


class RpcClient:
    """A connection to one node; safe to share between threads."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, attempts_max: int = ATTEMPTS_MAX) -> None:
        self.host = get_host(url)
        self._attempts_max = attempts_max
        self._ids = itertools.count(1)
        # Loading the certificates takes 50 ms, for nothing where the address is plain HTTP: redirects are not followed.
        is_encrypted = urlsplit(url).scheme == "https"
        self._http = httpx.Client(base_url=url, timeout=timeout_s, trust_env=False, verify=is_encrypted)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, *params: Json) -> Json:
        """The result of one call."""
        (result,) = self.batch([(method, params)])
        return result

    def batch(self, calls: Sequence[tuple[str, Sequence[Json]]]) -> list[Json]:
        """The results of several calls in one request, in their order; the first refusal is raised."""
        if not calls:
            return []
        methods = [method for method, _ in calls]
        attempts = self._attempts_max if REPEATABLE_METHODS.issuperset(methods) else 1
        for attempt in range(1, attempts):
            try:
                return self._exchange(calls)
            except Unavailable:
                time.sleep(PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.5, 1))
        return self._exchange(calls)

    def _exchange(self, calls: Sequence[tuple[str, Sequence[Json]]]) -> list[Json]:
        requests = [
            {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": list(params)}
            for method, params in calls
        ]
        answers = self._post(requests[0] if len(requests) == 1 else requests)
        by_id = {answer.get("id"): answer for answer in answers}
        return [self._read(by_id.get(request["id"]) or by_id.get(None), str(request["method"])) for request in requests]

    def _post(self, body: Json) -> list[dict[str, Json]]:
        try:
            response = self._http.post("", json=body)
        except httpx.HTTPError as error:
            raise self._unreachable(type(error).__name__) from error
        if response.status_code in BUSY_STATUSES:
            raise self._unreachable(f"HTTP {response.status_code}")
        try:
            answers = orjson.loads(response.content)  # eth-account lifts the limit that guards the standard library
        except ValueError as error:
            raise self._malformed(f"HTTP {response.status_code} and no JSON") from error
        answers = answers if isinstance(answers, list) else [answers]
        if not all(isinstance(answer, dict) for answer in answers):
            raise self._malformed("JSON that is no JSON-RPC")
        return answers

    def _read(self, answer: dict[str, Json] | None, method: str) -> Json:
        """The result inside one answer."""
        if answer is None or not ("result" in answer or isinstance(answer.get("error"), dict)):
            raise self._malformed(f"no answer to `{method}`")
        if "result" in answer and answer.get("error") is None:
            return answer["result"]
        error = answer["error"]
        code, message = error.get("code", 0), str(error.get("message", ""))
        if code in BUSY_CODES:
            raise self._unreachable(shorten(message))
        raise NodeRefused(self.host, method, code, message, find_revert_data(error.get("data")))

    def _unreachable(self, what: str) -> Unavailable:
        return Unavailable(
            Reason.NO_ANSWER,
            f"the node at `{self.host}` did not answer (`{what}`)",
            hint="check that it runs and the address is right; `proofcast chain dev` starts a local one",
        )

    def _malformed(self, what: str) -> InvalidInput:
        return InvalidInput(
            Reason.MALFORMED,
            f"the node at `{self.host}` answered with {what}",
            hint="check that the address is that of an Ethereum JSON-RPC endpoint",
        )


def shorten(message: str) -> str:
    """A node's own words, on one line and without control characters."""
    return ascii(message[:MESSAGE_LENGTH_MAX])[1:-1]


def get_host(url: str) -> str:
    """The part of an endpoint that may be shown."""
    try:
        parts = urlsplit(url)
        shown = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    except ValueError:
        parts, shown = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            "the node's address is no `http://` or `https://` address",
            hint="give one like `http://127.0.0.1:8545`",
        )
    return shown


def find_revert_data(data: Json) -> bytes:
    """The revert data in an error object: a hex string, or one nested under `data` as some nodes do."""
    if isinstance(data, dict):
        data = data.get("data")
    if not isinstance(data, str):
        return b""
    try:
        return bytes.fromhex(data.removeprefix("Reverted ").removeprefix("0x"))
    except ValueError:
        return b""
