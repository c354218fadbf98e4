"""One writer at a time for the tables in a folder."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proofcast.errors import InvalidRequest, Reason, Unavailable

FILE = ".writer"


@contextmanager
def held(folder: str) -> Iterator[None]:
    """Be the one who writes; the lock ends with the process, however that ends. Object storage knows no locks."""
    if "://" in folder:
        yield
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        file = (Path(folder) / FILE).open("a")
    except OSError as error:
        raise Unavailable(
            Reason.NOT_STORED, f"`{folder}` cannot be written ({error.strerror})", hint="check its name and permissions"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidRequest(
                Reason.FENCED, f"another process writes the tables `{folder}`", hint="wait until it ends, or stop it"
            ) from None
        yield
