"""The end of a server: its key signs who comes after it, and its folder serves no more."""

from pathlib import Path

from proofcast.errors import InvalidRequest, Reason
from proofcast.groups.io.log import SegmentLog, replace_file
from proofcast.groups.io.recovery import FRAMES
from proofcast.groups.io.serverkey import NAME, load_server_key
from proofcast.groups.succession import Succession, sign_succession, verify_succession

RETIRED = "retired"


def retire(folder: Path, new: bytes) -> bytes:
    """The statement; said once, and the same for whoever asks again. The server must be stopped."""
    if not (folder / NAME).exists():
        message = f"`{folder}` holds no server"
        raise InvalidRequest(Reason.BAD_ARGUMENT, message, hint="name the folder that it was served from")
    key = load_server_key(folder)
    log = SegmentLog(folder / FRAMES)
    try:
        known = find_succession(folder)
        if known is None:
            replace_file(folder / RETIRED, sign_succession(key.signing, new, log.next_number - 1))
        elif known.new != new:
            message = f"this server has named `{known.new.hex()}` as its successor"
            raise InvalidRequest(Reason.NOT_ALLOWED, message, hint="a key names one successor, for ever")
    finally:
        log.close()
    return (folder / RETIRED).read_bytes()


def find_succession(folder: Path) -> Succession | None:
    path = folder / RETIRED
    return verify_succession(path.read_bytes(), load_server_key(folder).public) if path.exists() else None


def require_in_office(folder: Path) -> None:
    succession = find_succession(folder)
    if succession is not None:
        message = f"this server ended with epoch `{succession.epoch}`"
        raise InvalidRequest(Reason.NOT_ALLOWED, message, hint=f"its successor has the key `{succession.new.hex()}`")
