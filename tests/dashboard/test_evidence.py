"""The script's verifier beside Python's: what one accepts the other does, byte for byte.

It says nothing of two parts, the maker's word of trust and the transaction's proof, and does not look at them.
"""

import base64
import json
import random
import subprocess
from pathlib import Path

import httpx
import pytest

from proofcast.chain.evidence import parse_evidence, verify_evidence
from proofcast.cli.doctor import find_program
from proofcast.errors import InvalidInput
from proofcast.testing.dashboard import Stage

pytestmark = [pytest.mark.slow, pytest.mark.needs("anvil", "node")]

SEED, FLIPS = 7, 150
"""A permutation takes a millisecond in JavaScript."""
RUN = """
const { event, cases } = JSON.parse((await import("node:fs")).readFileSync(0, "utf8"));
const judge = (text) => {
  try { verifyEvidence(Uint8Array.from(Buffer.from(text, "base64")), event.blockhash, event); return true; }
  catch { return false; }
};
console.log(JSON.stringify(cases.map(judge)));
"""


def read_verifier(root: Path) -> str:
    """The part of the script that needs no page."""
    script = (root / "src/proofcast/dashboard/script.js").read_text()
    tools = [
        line for line in script.splitlines() if line.startswith(("const shorten", "const toHex", "const decodeBase64"))
    ]
    verifier = script[script.index("function require(") : script.index("// --- begin")]
    return "\n".join([*tools, verifier, RUN])


def ask_script(root: Path, event: dict[str, str], cases: list[bytes]) -> list[bool]:
    node = find_program("node")
    assert node
    asked = json.dumps({"event": event, "cases": [base64.b64encode(case).decode() for case in cases]})
    ran = subprocess.run(
        [node, "--input-type=module", "--eval", read_verifier(root)],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(ran.stdout))


def is_accepted(data: bytes, trusted: bytes) -> bool:
    try:
        verify_evidence(data, trusted)
    except InvalidInput:
        return False
    return True


def test_script_accepts_no_more_than_python(stage: Stage, root: Path) -> None:
    stage.publish(stage.create_topic("proofs"), b"something to prove")
    page = httpx.get(f"{stage.url}/api/v1/events", params={"topic": "proofs", "limit": "1000"}).json()
    event = page["events"][0]
    data = httpx.get(f"{stage.url}/api/v1/events/{event['id']}/evidence").content
    trusted = bytes.fromhex(event["blockhash"][2:])
    evidence = parse_evidence(data)
    assert evidence.transaction_proof == (), "the feed keeps no transactions, so there is nothing to skip there"
    trust_at = data.index(evidence.trust.encode())
    places = sorted(random.Random(SEED).sample(range(len(data)), FLIPS))
    cases = [data, data[:-1], data + b"\0", *(flip(data, place) for place in places)]
    judged = ask_script(root, event, cases)
    assert [is_accepted(case, trusted) for case in cases] == [True] + [False] * (len(cases) - 1)
    assert judged[:3] == [True, False, False]
    accepted = [place for place, is_true in zip(places, judged[3:], strict=True) if is_true]
    assert all(trust_at <= place < trust_at + len(evidence.trust) for place in accepted), f"seed {SEED}"
    for false in (
        {"topic": "0x00"},
        {"sequence": "9"},
        {"publisher": "0x00"},
        {"data_base64": ""},
        {"eventkey": "0x01"},
    ):
        assert ask_script(root, event | false, [data]) == [False], false


def flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
