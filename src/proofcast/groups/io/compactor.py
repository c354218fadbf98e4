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
    compact(Path(sys.argv[1]), load_server_key(Path(sys.argv[1])), int(sys.argv[2]))
