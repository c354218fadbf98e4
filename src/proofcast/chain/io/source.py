"""Where blocks come from, by the text that names it.

A source is opened from its description, which travels to other processes where an open source cannot:

    http://127.0.0.1:8545                        a node
    http://one,http://two,http://three           several; what most of them say counts
    3 of http://one,http://two,http://three      ... or as many as are demanded
    blocks/  or  blocks/mainnet-*.rlp.gz         recorded blocks, one to a file
    mainnet-01234-5ec1ffb8.era1                  an archive of 8,192 blocks

Nothing a source gives is believed: `proofcast.chain.io.fetch` checks it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from proofcast.chain.io.era1 import open_archive
from proofcast.chain.io.nodes import NodesSource
from proofcast.chain.io.recorded import RecordedSource
from proofcast.chain.io.rpc import get_host
from proofcast.chain.io.rpc_source import RpcSource
from proofcast.chain.source import BlockSource
from proofcast.errors import InvalidRequest, Reason

__all__ = ["BlockSource", "open_source"]

QUORUM = re.compile(r"\s*(\d{1,3})\s+of\s+(.*)", re.DOTALL)


def open_source(url: str) -> BlockSource:
    demanded = QUORUM.fullmatch(url)
    addresses = [part.strip() for part in (demanded[2] if demanded else url).split(",")]
    if addresses[0].startswith(("http://", "https://")):
        return open_nodes(addresses, int(demanded[1]) if demanded else None)
    return open_archive(Path(url)) if url.endswith(".era1") else RecordedSource(url)


def open_nodes(addresses: Sequence[str], quorum: int | None) -> BlockSource:
    nodes = [RpcSource(address) for address in addresses]
    repeated = next((node for node, count in Counter(addresses).items() if count > 1), None)
    if repeated is not None:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"the node at `{get_host(repeated)}` is named twice",
            hint="a node that agrees with itself proves nothing; name each once",
        )
    if len(nodes) == 1 and quorum is None:
        return nodes[0]
    return NodesSource(nodes, len(nodes) // 2 + 1 if quorum is None else quorum)
