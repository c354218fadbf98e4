"""The development chain: started with its options, gone afterwards, however its program ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proofcast.chain.io.answers import parse_quantity
from proofcast.chain.io.rpc import RpcClient
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.onchain.io.devchain import ANVIL_VARIABLE, DevChainOptions, run_dev_chain
from proofcast.onchain.io.reading import encode_hex

PROCESS_S_MAX = 60


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_missing_anvil_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ANVIL_VARIABLE, str(tmp_path / "anvil"))
    with pytest.raises(Unavailable, match="cannot be run") as raised, run_dev_chain():
        pass
    assert raised.value.reason is Reason.TOOL_MISSING
    assert ANVIL_VARIABLE in raised.value.hint


@pytest.mark.needs("anvil")
def test_unknown_hardfork_is_refused() -> None:
    with (
        pytest.raises(InvalidRequest, match=r"anvil did not start: .*atlantis"),
        run_dev_chain(DevChainOptions(hardfork="atlantis")),
    ):
        pass


@pytest.mark.needs("anvil")
def test_taken_port_is_refused() -> None:
    with run_dev_chain() as chain:
        port = int(chain.url.rsplit(":", 1)[1])
        with pytest.raises(InvalidRequest, match="anvil did not start"), run_dev_chain(DevChainOptions(port=port)):
            pass


@pytest.mark.needs("anvil")
def test_chain_is_gone_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), run_dev_chain() as chain:
        raise ZeroDivisionError
    assert not is_running(chain.process.pid)


@pytest.mark.needs("anvil")
@pytest.mark.parametrize(
    ("options", "hardfork"),
    [
        (DevChainOptions(hardfork="shanghai"), "Shanghai"),
        (DevChainOptions(hardfork="cancun"), "Cancun"),
        (DevChainOptions(optimism=True), "Jovian"),
    ],
)
def test_hardfork_and_network(options: DevChainOptions, hardfork: str) -> None:
    with run_dev_chain(options) as chain, RpcClient(chain.url) as rpc:
        assert rpc.call("anvil_nodeInfo")["hardFork"] == hardfork


@pytest.mark.needs("anvil")
def test_gas_limits() -> None:
    with run_dev_chain(DevChainOptions(gas_limit=50_000_000, tx_gas_limit=True)) as chain, RpcClient(chain.url) as rpc:
        assert parse_quantity(rpc.call("eth_getBlockByNumber", "latest", False)["gasLimit"]) == 50_000_000
        account = encode_hex(chain.accounts[0].address)
        rpc.call("eth_sendTransaction", {"from": account, "to": account, "gas": hex(1 << 24)})
        with pytest.raises(InvalidRequest, match="tx_gas_limit_cap"):
            rpc.call("eth_sendTransaction", {"from": account, "to": account, "gas": hex((1 << 24) + 1)})


@pytest.mark.needs("anvil")
def test_two_chains_of_one_second_are_told_apart() -> None:
    with run_dev_chain() as one, run_dev_chain() as other, RpcClient(one.url) as rpc, RpcClient(other.url) as rpc_2:
        blocks = [client.call("eth_getBlockByNumber", "0x0", False)["hash"] for client in (rpc, rpc_2)]
    assert blocks[0] != blocks[1]


@pytest.mark.needs("anvil")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_command_and_its_chain(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "proofcast.cli", "chain", "dev", "--port", "0", "--json"]
    environment = os.environ | {"PROOFCAST_STATE_DIR": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        announced = json.loads(process.stdout.readline())
        assert is_running(announced["process_id"])
        with RpcClient(announced["url"]) as rpc:
            assert len(rpc.call("eth_getCode", announced["topics"], "latest")) > 1000
        process.send_signal(number)
        out, err = process.communicate(timeout=PROCESS_S_MAX)
    assert (process.returncode, out, err) == (0, "", "stopped\n")
    assert not is_running(announced["process_id"])
