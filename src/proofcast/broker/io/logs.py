"""The log: a line per request and per thing that an operator may have to act on, as text or as JSON.

Nothing secret reaches it: no header, no body, no query, no key. What is logged is named field by field.
"""

import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

import orjson

LOG = logging.getLogger("proofcast.broker")
SERVER = logging.getLogger("aiohttp.server")
"""Where faults of ours end that no route foresaw."""
FIELDS = ("method", "path", "status", "duration_ms", "client", "trace", "subscription", "transport", "reason", "detail")
"""Everything that a line may hold besides time, level and what happened."""


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LineFormatter(logging.Formatter):
    """One line per record, whatever is in it: a line break within a value is escaped."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {name: record.__dict__[name] for name in FIELDS if record.__dict__.get(name) not in (None, "")}
        if record.exc_info and record.exc_info[1]:
            fields["error"] = self.formatException(record.exc_info)
        if self._form is LogFormat.JSON:
            whole = {"time": moment, "level": record.levelname.lower(), "message": record.getMessage(), **fields}
            return orjson.dumps(whole, default=str).decode()
        values = " ".join(f"{name}={ascii(str(value))[1:-1]}" for name, value in fields.items())
        return f"{moment} {record.levelname.lower()} {ascii(record.getMessage())[1:-1]} {values}".rstrip()


def open_log(form: LogFormat, level: int = logging.INFO, stream: TextIO = sys.stderr) -> None:
    """From now on; without it nothing but warnings is written."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter(form))
    for logger in (LOG, SERVER):
        logger.handlers[:] = [handler]
        logger.propagate = False
    LOG.setLevel(level)
