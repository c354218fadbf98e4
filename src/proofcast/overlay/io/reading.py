"""Reading a stream of libp2p without an answer to every read.

yamux lets a sender run ahead by a window, which the reader gives back. py-libp2p does so after each read, by a frame of
its own that both ends encrypt, write and read: as much work as a small message costs. Here the window is given back
when a quarter of it is used.
"""

from libp2p.abc import INetStream
from libp2p.stream_muxer.yamux.yamux import DEFAULT_WINDOW_SIZE, YamuxStream

READ_BYTES = 65_536
CREDIT_BYTES = DEFAULT_WINDOW_SIZE // 4


class StreamReader:
    def __init__(self, stream: INetStream) -> None:
        self._stream = stream
        muxed = getattr(stream, "muxed_stream", None)
        self._muxed = muxed if isinstance(muxed, YamuxStream) else None
        """None for a muxer of another kind, which is read as it is."""
        self._used = 0

    async def read(self) -> bytes:
        """Whatever has come, at least one byte; empty at the end of some streams, others raise."""
        if self._muxed is None:
            return await self._stream.read(READ_BYTES)
        data = await self._muxed.conn.read_stream(self._muxed.stream_id, READ_BYTES)
        self._used += len(data)
        if self._used >= CREDIT_BYTES:
            credit, self._used = self._used, 0
            self._muxed.recv_window += credit
            await self._muxed.send_window_update(credit)
        return data
