"""`proofcast key`: who may use a broker."""

from datetime import UTC, datetime

import click

from proofcast.broker.io.access import make_key
from proofcast.broker.scope import Scope
from proofcast.cli.output import emit, format_table, note
from proofcast.cli.stores import REQUIRED_STORE, use_store

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def key() -> None:
    """Make, list and revoke the keys of a broker."""


@key.command()
@click.argument("label")
@click.option("--scope", type=click.Choice([one.value for one in Scope]), default=Scope.READ.value, show_default=True)
@click.option("--rate", type=click.IntRange(min=0), default=0, show_default=True, help="Requests a second; 0: any.")
@REQUIRED_STORE
@AS_JSON
def create(label: str, scope: str, rate: int, store: str, as_json: bool) -> None:
    """Make a key for LABEL, whoever that is; it is shown this once."""
    made = make_key()
    use_store(store, lambda opened: opened.add_key(made.id, made.digest, label, Scope(scope), rate))
    emit(as_json, {"id": made.id, "key": made.text, "label": label, "scope": scope, "rate_per_s": rate}, made.text)
    note(f"send it as `Authorization: Bearer`; `proofcast key revoke {made.id}` ends it")


@key.command(name="list")
@REQUIRED_STORE
@AS_JSON
def list_keys(store: str, as_json: bool) -> None:
    """List the keys, without what is secret."""
    found = use_store(store, lambda opened: opened.find_keys())
    shown = [
        {
            "id": one.id,
            "label": one.label,
            "scope": str(one.scope),
            "rate_per_s": one.rate_per_s,
            "created": datetime.fromtimestamp(one.created_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        for one in found
    ]
    rows = [["id", "label", "scope", "rate", "created"], *([str(value) for value in one.values()] for one in shown)]
    emit(as_json, shown, format_table(rows) if shown else "no keys: only this machine is served")


@key.command()
@click.argument("key_id", metavar="ID")
@REQUIRED_STORE
def revoke(key_id: str, store: str) -> None:
    """End the key ID; every broker on this store refuses it within seconds."""
    use_store(store, lambda opened: opened.revoke_key(key_id))
    note(f"`{key_id}` is revoked")
