"""The commands for when somebody lied: write the proof, check one, go on."""

from pathlib import Path

import click

from proofcast.cli.connection import JSON_OPTION, Settings
from proofcast.cli.device import parse_server_key
from proofcast.cli.device_session import DEVICE_OPTIONS, require_trust, run_online
from proofcast.cli.output import emit, note
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.groups import proof
from proofcast.groups.client import Recovery
from proofcast.groups.io.connection import Connection
from proofcast.groups.io.device import Device

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(params=[*DEVICE_OPTIONS])
@click.argument("file", type=FILE)
@click.pass_obj
def prove(settings: Settings, device: str, file: Path) -> None:
    """Write the proof that the server lied to FILE; a peer's evidence is fetched first, where it has come."""
    found: list[tuple[bytes, bytes]] = []

    async def work(own: Device, connection: Connection) -> None:
        proofs = own.get_proofs()
        if not proofs:
            require_trust(own)
            message = "this device has nothing to prove: nobody lied to it"
            raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="`proofcast group status` says what it knows")
        found.append((proofs[-1], own.client.server_key))

    run_online(device, work)
    (data, key), *_ = found
    write_file(file, data)
    verdict = proof.verify_proof(data, key)
    note(f"anybody can check it: proofcast group verify-proof {file} --server-key {key.hex()}")
    emit(settings.as_json, {"file": str(file), "lie": verdict.lie, "sentence": verdict.sentence}, verdict.sentence)


def write_file(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as error:
        message = f"`{file}` cannot be written: {error.strerror}"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="name another file") from None


@click.command(params=[JSON_OPTION])
@click.argument("file", type=FILE)
@click.option("--server-key", required=True, help="The key of the server that is accused.")
@click.pass_obj
def verify_proof(settings: Settings, file: Path, server_key: str) -> None:
    """Check, offline and trusting nobody, that FILE proves a lie of the server with this key."""
    key = parse_server_key(server_key)
    try:
        verdict = proof.verify_proof(file.read_bytes(), key)
    except OSError as error:
        message = f"`{file}` cannot be read: {error.strerror}"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="name the file that `group prove` wrote") from None
    except proof.Refused as error:
        hint = "nobody is accused by this file"
        raise InvalidInput(Reason.DISAGREES, f"`{file}` proves nothing: {error}", hint=hint) from None
    record = {"lie": verdict.lie, "epoch": verdict.epoch, "sentence": verdict.sentence}
    emit(settings.as_json, record, f"the proof holds: {verdict.sentence}")


@click.command(params=[*DEVICE_OPTIONS])
@click.argument("how", type=click.Choice([recovery.name.lower().replace("_", "-") for recovery in Recovery]))
@click.pass_obj
def recover(settings: Settings, device: str, how: str) -> None:
    """Go on after a lie: undo what is not confirmed, or take the state from a peer."""
    recovery = Recovery[how.upper().replace("-", "_")]

    async def work(own: Device, connection: Connection) -> None:
        await own.recover(recovery, connection)

    run_online(device, work)
    emit(settings.as_json, {"recovered": how}, f"recovered: {recovery.value}")
