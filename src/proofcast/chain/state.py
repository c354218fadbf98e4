"""A word of a contract's storage, proven by the header of a block: what a node says of it need not be believed.

A word is accepted if

- the account's proof leads from the header's state root to the contract's address;
- the account has four fields, of which the third is its storage root;
- the word's proof leads from there to the word's place.

That a word is zero is proven by its absence, which nobody here needs: such a proof is refused.
"""

from collections.abc import Sequence

from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum import rlp
from proofcast.ethereum.header import Header
from proofcast.ethereum.keccak import HASH_LENGTH, keccak256
from proofcast.ethereum.trie import verify_value

ACCOUNT_FIELDS = 4
STORAGE_ROOT = 2
WORD_BITS = 256


def verify_storage(
    header: Header, address: bytes, place: bytes, account_proof: Sequence[bytes], storage_proof: Sequence[bytes]
) -> int:
    account = rlp.decode(verify_value(header.state_root, address, account_proof))
    root = account[STORAGE_ROOT] if isinstance(account, list) and len(account) == ACCOUNT_FIELDS else b""
    if not isinstance(root, bytes) or len(root) != HASH_LENGTH:
        raise InvalidInput(
            Reason.MALFORMED,
            f"what stands at `0x{address.hex()}` in the state is no account",
            hint="ask another node for the proof",
        )
    value = verify_value(root, place, storage_proof)
    return rlp.get_integer(value, rlp.read_whole(value), WORD_BITS)


def compute_mapping_place(key: bytes, slot: int) -> bytes:
    """Where Solidity puts the value of a key, of the mapping at a slot."""
    return keccak256(key + slot.to_bytes(32))
