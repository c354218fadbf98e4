"""How the system's allocator is to behave in a broker, which runs for months."""

import ctypes

M_ARENA_MAX = -8
"""Of glibc's `mallopt`."""
ARENAS = 2


def share_arenas() -> None:
    """Have all threads take memory from a few places. By default each gets one of its own, and what was freed in one is
    no use to the others: the threads that read the feed and write the store then grow side by side for hours."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_ARENA_MAX, ARENAS)
