"""`proofcast chain`: a development chain, and our contracts on any chain."""

import tempfile
from pathlib import Path

import click

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.connection import (
    JSON_OPTION,
    NODE_OPTIONS,
    SENDER_OPTIONS,
    Settings,
    open_bare_sender,
)
from proofcast.cli.output import emit, note
from proofcast.errors import Reason, Unavailable
from proofcast.onchain.abi import format_value
from proofcast.onchain.deployment import Contracts
from proofcast.onchain.io.artefacts import get_exchanges
from proofcast.onchain.io.devchain import DevChain, DevChainOptions, run_dev_chain
from proofcast.onchain.io.exchanges import deploy_exchanges
from proofcast.onchain.io.keys import KEY_VARIABLE, parse_key
from proofcast.onchain.io.publishing import deploy_contracts
from proofcast.onchain.io.sender import Sender

DEFAULT_PORT = 8545


@click.group()
def chain() -> None:
    """Run a development chain, or deploy to any chain."""


@chain.command(params=[JSON_OPTION])
@click.option("--port", type=int, default=DEFAULT_PORT, show_default=True, help="0 for any free one.")
@click.option("--hardfork", help="e.g. `shanghai`; else the newest.")
@click.option("--optimism", is_flag=True, help="Behave like an OP Stack rollup.")
@click.option("--block-time", type=int, help="Seconds between blocks; else a block per transaction.")
@click.option("--gas-limit", type=int, help="Gas limit of a block.")
@click.option("--tx-gas-limit", is_flag=True, help="Enforce EIP-7825's limit of 2^24 gas per transaction.")
@click.option("--state", type=click.Path(path_type=Path), help="File to keep the chain in; goes on from it.")
@click.pass_obj
def dev(
    settings: Settings,
    port: int,
    hardfork: str | None,
    optimism: bool,
    block_time: int | None,
    gas_limit: int | None,
    tx_gas_limit: bool,
    state: Path | None,
) -> None:
    """Run a development chain on loopback, with `Topics` and `Exchanges` deployed, until Ctrl-C or SIGTERM."""
    options = DevChainOptions(port, hardfork, optimism, block_time, gas_limit, tx_gas_limit, state)
    try:
        with run_dev_chain(options) as running:
            contracts = prepare(running)
            announce(settings.as_json, running, contracts)
            code = running.process.wait()
    except KeyboardInterrupt:
        note("stopped")
        return
    raise Unavailable(Reason.NO_ANSWER, f"anvil ended by itself with code `{code}`", hint="start it again")


def prepare(running: DevChain) -> Contracts:
    """Deploy our contracts with the last account, so that the first ones start with nonce 0."""
    with RpcClient(running.url) as rpc, tempfile.TemporaryDirectory() as folder:
        sender = Sender(rpc, parse_key(running.accounts[-1].private_key), Path(folder))
        contracts = deploy_contracts(sender)
        deploy_exchanges(sender, contracts.topics)
        return contracts


def announce(as_json: bool, running: DevChain, contracts: Contracts) -> None:
    record = {
        "url": running.url,
        "chain_id": running.chain_id,
        "topics": contracts.topics,
        "lens": contracts.lens,
        "exchanges": get_exchanges(contracts.topics),
        "accounts": running.accounts,
        "process_id": running.process.pid,
    }
    lines = [
        f"export PROOFCAST_RPC_URL={running.url}",
        f"export {KEY_VARIABLE}={running.accounts[0].private_key}",
        "",
        f"chain {running.chain_id}, Topics at {format_value(contracts.topics)},"
        f" Exchanges at {format_value(get_exchanges(contracts.topics))}",
        "accounts with play money, whose keys everybody knows:",
        *(f"  {format_value(account.address)}  {account.private_key}" for account in running.accounts),
    ]
    emit(as_json, record, "\n".join(lines))


@chain.command(params=[*NODE_OPTIONS, *SENDER_OPTIONS])
@click.pass_obj
def deploy(settings: Settings) -> None:
    """Deploy `Topics`, its lens and `Exchanges`; does nothing where they are there.

    Their addresses are the same on every chain; that of `Topics` is printed.
    """
    with open_bare_sender(settings) as sender:
        contracts = deploy_contracts(sender, settings.contract)
        exchanges = deploy_exchanges(sender, contracts.topics)
        record = {
            "topics": contracts.topics,
            "lens": contracts.lens,
            "exchanges": exchanges,
            "chain_id": sender.chain_id,
        }
        emit(settings.as_json, record, format_value(contracts.topics))
