"""With IPFS for real: `make test-kubo` builds kubo and runs this; `make test` leaves it out, because it takes minutes.

Our peers enter kubo's LAN table and find each other by it, and an event carries the CID of what is fetched from it.
"""

import base64
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from proofcast.cli import main
from proofcast.overlay.io.control import ask
from proofcast.overlay.io.options import SOCKET_NAME
from proofcast.testing.overlay.processes import start_peer

KUBO = os.environ.get("PROOFCAST_KUBO", "")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not KUBO, reason="`make test-kubo` runs it")]
LAN = ("--kad-protocol", "/ipfs/lan/kad/1.0.0")
CONTENT = b"more than one likes to send to everybody\n" * 5_000
RAW_SHA256 = bytes.fromhex("01551220")
"""How a CID of plain bytes begins: version 1, raw, SHA-256 of 32 bytes."""
WAIT_S_MAX = 60.0


class Kubo:
    """A node of its own, on loopback alone; nobody outside is asked."""

    def __init__(self, folder: Path) -> None:
        self._environment = os.environ | {"IPFS_PATH": str(folder), "IPFS_TELEMETRY": "off"}
        self.run("init", "--profile", "test")

    def run(self, *words: str, data: bytes = b"") -> str:
        done = subprocess.run([KUBO, *words], env=self._environment, input=data, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    @contextmanager
    def serve(self) -> Iterator[tuple[str, str]]:
        """The address for libp2p hosts, and that of its HTTP gateway."""
        with subprocess.Popen([KUBO, "daemon"], env=self._environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            try:
                said = ""
                while "Daemon is ready" not in said:
                    line = process.stdout.readline()
                    assert line, f"kubo ended: {said}"
                    said += line
                port = re.search(r"Gateway server listening on /ip4/127\.0\.0\.1/tcp/(\d+)", said)
                assert port, said
                yield self._find_address(), f"http://127.0.0.1:{port[1]}"
            finally:
                process.terminate()

    def _find_address(self) -> str:
        addresses = json.loads(self.run("id"))["Addresses"]
        return next(one for one in addresses if re.match(r"/ip4/127\.0\.0\.1/tcp/\d+/p2p/", one))

    def wait_for_table(self, peer: str) -> None:
        """Until the peer is in the LAN table; kubo enters those whom it has identified."""
        until = time.monotonic() + WAIT_S_MAX
        while peer not in self.run("stats", "dht", "lan"):
            assert time.monotonic() < until, self.run("stats", "dht", "lan")


def get_peer(address: str) -> str:
    return address.rpartition("/")[2]


def test_peers_meet_by_kubo_and_content_comes_from_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kubo, one, other = Kubo(tmp_path / "kubo"), tmp_path / "one", tmp_path / "other"
    cid = kubo.run("add", "--quieter", "--cid-version", "1", data=CONTENT).strip()
    with kubo.serve() as (address, gateway):
        with start_peer(one, *LAN) as first:
            kubo.run("swarm", "connect", first)
            kubo.wait_for_table(get_peer(first))
            with start_peer(other, *LAN, "--bootstrap", address):
                neighbours = ask(other / SOCKET_NAME, {"do": "status"})["neighbours"]
                assert [neighbour["peer"] for neighbour in neighbours] == [get_peer(first)]
                assert main(["peer", "subscribe", "--state", str(other), "--count", "0", "papers T"]) == 0
                assert main(["peer", "publish", "--state", str(one), "--payload", cid, "papers T"]) == 0
                capfd.readouterr()
                assert main(["peer", "subscribe", "--state", str(other), "--count", "1", "--json", "papers T"]) == 0
        received = base64.b64decode(json.loads(capfd.readouterr().out)["payload"]).decode()
        content = httpx.get(f"{gateway}/ipfs/{received}", params={"format": "raw"}).raise_for_status().content
    digest = base64.b32decode(received[1:].upper() + "=" * (-(len(received) - 1) % 8))
    assert digest == RAW_SHA256 + sha256(content).digest(), "a CID is the hash of what it names"
    assert content == CONTENT
