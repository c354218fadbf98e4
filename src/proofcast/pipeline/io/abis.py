"""ABIs from files and out of the package."""

import json
from pathlib import Path

from proofcast.errors import InvalidRequest, Reason
from proofcast.ethereum.abi import parse_abi
from proofcast.onchain.io.artefacts import load_artefact
from proofcast.pipeline.decoding import OWN_ABI, Abi


def get_own_abi() -> Abi:
    """Topics, exchanges and queues, publications, messages and outcomes of our own contracts, wherever they are."""
    return Abi(OWN_ABI, parse_abi(load_artefact("Topics").abi) + parse_abi(load_artefact("Exchanges").abi))


def load_abi(path: Path, addresses: frozenset[bytes] = frozenset()) -> Abi:
    """The events of a JSON ABI, bare or as compilers write it (under `abi`), under the file's name."""
    try:
        content = json.loads(path.read_text())
        entries = content["abi"] if isinstance(content, dict) else content
        abi = Abi(path.stem, parse_abi(entries), addresses)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise refuse(path, f"is no JSON ABI ({error})") from error
    if not (abi.topics or abi.takes_anonymous):
        raise refuse(path, "names no event that can be told from others")
    return abi


def refuse(path: Path, why: str) -> InvalidRequest:
    hint = "give the ABI that the compiler wrote; of anonymous events also the contract, with `--address`"
    return InvalidRequest(Reason.BAD_ARGUMENT, f"`{path}` {why}", hint=hint)
