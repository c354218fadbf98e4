"""A short-lived process beside a running server: makes a snapshot and frees the disk of what it replaces."""

import os
import sys
from pathlib import Path

from proofcast.groups.io.recovery import compact
from proofcast.groups.io.serverkey import load_server_key

NICENESS = 10
"""The server goes first."""

if __name__ == "__main__":
    os.nice(NICENESS)
    folder, last, known = Path(sys.argv[1]), *map(int, sys.argv[2:])
    compact(folder, load_server_key(folder), last, known=known)
