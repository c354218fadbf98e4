"""A node that stands before a true one and lies about receipts; everything else it passes on."""

from collections.abc import Mapping

import httpx
import orjson

from proofcast.testing.chain.lying import FALSIFIERS, Lie
from proofcast.testing.chain.server import Answer, JsonValue, LoopbackServer, encode

WAIT_S_MAX = 10.0


class LyingRelay(LoopbackServer):
    def __init__(self, url: str, lie: Lie) -> None:
        super().__init__()
        self._url, self._lie = url, lie

    def answer(self, request: JsonValue) -> Answer:
        response = httpx.post(
            self._url,
            content=orjson.dumps(request),
            headers={"content-type": "application/json"},
            timeout=WAIT_S_MAX,
            trust_env=False,
        )
        truth: JsonValue = orjson.loads(response.content)
        if isinstance(request, list) and isinstance(truth, list):
            return encode([self._falsify(call, said) for call, said in zip(request, truth, strict=True)])
        return encode(self._falsify(request, truth))

    def _falsify(self, call: JsonValue, said: JsonValue) -> JsonValue:
        assert isinstance(call, Mapping)
        assert isinstance(said, dict)
        receipts = said.get("result")
        if call["method"] == "eth_getBlockReceipts" and isinstance(receipts, list) and receipts:
            return said | {"result": FALSIFIERS[self._lie](receipts)}
        return said
