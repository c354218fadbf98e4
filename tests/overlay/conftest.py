"""Real hosts are tested where libp2p is installed: `make test` does so, `make test-fast` does not need it."""

import warnings
from importlib import import_module
from importlib.util import find_spec

collect_ignore = [] if find_spec("libp2p") else ["test_hosts.py", "test_peer.py"]

if not collect_ignore:
    with warnings.catch_warnings():  # libp2p imports a part of websockets that is deprecated
        warnings.simplefilter("ignore")
        import_module("libp2p")
