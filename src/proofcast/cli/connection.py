"""Options that every command with a node shares, and what they lead to: a node, the contract, a sender.

The options are stored in the command's `Settings` and not handed to the function, so that each command's signature says
what is particular to it.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.output import note
from proofcast.cli.values import ADDRESS, AMOUNT
from proofcast.errors import InvalidRequest, Reason
from proofcast.onchain.deployment import Contracts
from proofcast.onchain.io.artefacts import get_contracts
from proofcast.onchain.io.fees import FeePolicy
from proofcast.onchain.io.keys import KEYSTORE_VARIABLE, load_account
from proofcast.onchain.io.reading import require_chain, require_contract
from proofcast.onchain.io.sender import Sender, Stage

PASSWORD_VARIABLE = "PROOFCAST_PASSWORD"
STATE_VARIABLE = "PROOFCAST_STATE_DIR"
DEFAULT_RPC_URL = "http://127.0.0.1:8545"


@dataclass(slots=True)
class Settings:
    """The shared options of one command line."""

    rpc_url: str = DEFAULT_RPC_URL
    contract: bytes | None = None
    chain_id: int | None = None
    as_json: bool = False
    keystore: Path | None = None
    password_file: Path | None = None
    max_fee: int | None = None
    tip: int | None = None
    idempotency_key: str | None = None

    def get_key(self) -> str:
        """The idempotency key: the user's, or one that is told before anything is sent."""
        if self.idempotency_key is None:
            self.idempotency_key = secrets.token_hex(8)
        return self.idempotency_key


@dataclass(frozen=True, slots=True)
class Connection:
    rpc: RpcClient
    contracts: Contracts
    chain_id: int


def store(context: click.Context, parameter: click.Parameter, value: object) -> None:
    settings = context.ensure_object(Settings)
    if value is not None:
        setattr(settings, str(parameter.name), value)


def option(name: str, meaning: str, kind: object = None, env: str | None = None) -> click.Option:
    return click.Option([name], help=meaning, type=kind, envvar=env, expose_value=False, callback=store)


FILE = click.Path(path_type=Path)
JSON_OPTION = click.Option(["--json", "as_json"], is_flag=True, expose_value=False, callback=store, help="Print JSON.")
NODE_OPTIONS = [
    option("--rpc-url", f"Node's JSON-RPC address.  [default: {DEFAULT_RPC_URL}]", env="PROOFCAST_RPC_URL"),
    option("--contract", "`Topics`, where it is not at its usual address.", ADDRESS, env="PROOFCAST_TOPICS"),
    option("--chain-id", "Refuse a node of any other chain.", click.INT, env="PROOFCAST_CHAIN_ID"),
    JSON_OPTION,
]
KEY_OPTIONS = [
    option("--keystore", "Encrypted key file; else $PROOFCAST_PRIVATE_KEY.", FILE, env=KEYSTORE_VARIABLE),
    option("--password-file", f"File with its password; else ${PASSWORD_VARIABLE}, else asked for.", FILE),
]
SENDER_OPTIONS = [
    *KEY_OPTIONS,
    option("--max-fee", "Most to pay per gas, e.g. `50gwei`.", AMOUNT),
    option("--tip", "Priority fee per gas; else what the node suggests.", AMOUNT),
    option("--idempotency-key", "Repeating a call with its key never does it twice."),
]


def read_password(settings: Settings) -> Callable[[], str]:
    """How to get the keystore's password when it is needed."""

    def read() -> str:
        if settings.password_file is None:
            return os.environ.get(PASSWORD_VARIABLE) or str(click.prompt("password", hide_input=True, err=True))
        try:
            return settings.password_file.read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise InvalidRequest(
                Reason.BAD_KEY,
                f"the password file `{settings.password_file}` cannot be read",
                hint="check its name and permissions",
            ) from None

    return read


def get_state_folder() -> Path:
    """Where the sender keeps its journal."""
    named = os.environ.get(STATE_VARIABLE)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(named) if named else Path(state) / "proofcast"


def require_contracts(rpc: RpcClient, settings: Settings) -> Contracts:
    contracts = get_contracts(settings.contract)
    require_contract(rpc, contracts.topics, "Topics")
    require_contract(rpc, contracts.lens, "TopicsLens")
    return contracts


@contextmanager
def connect(settings: Settings) -> Iterator[Connection]:
    """The node and the contracts, all checked."""
    with RpcClient(settings.rpc_url) as rpc:
        chain_id = require_chain(rpc, settings.chain_id)
        yield Connection(rpc, require_contracts(rpc, settings), chain_id)


@contextmanager
def open_sender(settings: Settings) -> Iterator[tuple[Sender, Contracts]]:
    """A sender for the user's key, and the contracts, which must be there."""
    with open_bare_sender(settings) as sender:
        yield sender, require_contracts(sender.rpc, settings)


@contextmanager
def open_bare_sender(settings: Settings) -> Iterator[Sender]:
    """A sender for the user's key."""
    account = load_account(settings.keystore, read_password(settings), os.environ)
    fees = FeePolicy(max_fee_wei=settings.max_fee, tip_wei=settings.tip)
    with RpcClient(settings.rpc_url) as rpc:
        require_chain(rpc, settings.chain_id)
        yield Sender(rpc, account, get_state_folder(), fees=fees, watch=report_progress(settings))


def report_progress(settings: Settings) -> Callable[[Stage, bytes], None]:
    def watch(stage: Stage, transaction_hash: bytes) -> None:
        if stage is Stage.JOURNALLED:
            note(f"sending 0x{transaction_hash.hex()} (idempotency key `{settings.get_key()}`)")
        elif stage is Stage.REPLACED:
            note(f"replaced by 0x{transaction_hash.hex()} with higher fees")

    return watch
