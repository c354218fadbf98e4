"""Strict reading of bytes from outside: every length is checked, nothing is left over."""

from proofcast.errors import InvalidInput, Reason


def refuse(message: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, message, hint="whoever sent it speaks another version, or lies")


class WireReader:
    """Takes fields from the front of what `what` names in refusals."""

    __slots__ = ("at", "data", "what")

    def __init__(self, data: bytes, what: str) -> None:
        self.data, self.what, self.at = data, what, 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise refuse(f"{self.what} ends after `{len(self.data)}` bytes, inside a field of `{size}`")
        self.at += size
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def count(self, size: int, limit: int) -> int:
        """A number of things to come, at most `limit`."""
        number = self.number(size)
        if number > limit:
            raise refuse(f"{self.what} announces `{number}` where at most `{limit}` are allowed")
        return number

    def finish(self) -> None:
        if self.at != len(self.data):
            raise refuse(f"{self.what} has `{len(self.data) - self.at}` bytes too many")
