"""`proofcast chain deploy`."""

from typing import TYPE_CHECKING

import pytest

from proofcast.onchain.abi import format_value
from proofcast.onchain.io.artefacts import get_contracts, get_exchanges

if TYPE_CHECKING:
    from conftest import CommandLine, Refused

pytestmark = pytest.mark.needs("anvil")


def test_deploy_needs_the_proxy(cli: "CommandLine", assert_refused: "Refused") -> None:
    for address in (get_contracts().topics, bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")):
        cli.playground.rpc.call("anvil_setCode", "0x" + address.hex(), "0x")
    assert_refused(cli("chain", "deploy"), 2, "lacks the deployment proxy")


def test_deploy_puts_topics_at_its_address_once(cli: "CommandLine") -> None:
    cli.playground.rpc.call("anvil_setCode", "0x" + get_contracts().topics.hex(), "0x")
    cli.playground.rpc.call("anvil_setNonce", "0x" + get_contracts().topics.hex(), "0x0")
    first = cli("chain", "deploy")
    assert first.line == format_value(get_contracts().topics)
    assert "sending" in first.err
    again = cli("chain", "deploy", "--json")
    assert again.json == {
        "topics": first.line,
        "lens": format_value(get_contracts().lens),
        "exchanges": format_value(get_exchanges(get_contracts().topics)),
        "chain_id": 31337,
    }
    assert "sending" not in again.err


def test_deploy_puts_a_lens_beside_another_topics(cli: "CommandLine") -> None:
    other = "0x" + cli.playground.create("Topics").hex()
    assert cli("topic", "list", "--contract", other).exit_code == 2
    assert cli("chain", "deploy", "--contract", other).exit_code == 0
    assert cli("topic", "list", "--contract", other).line == "there are no topics yet"
