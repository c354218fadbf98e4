"""The Merkle Patricia trie over a list: its root commits to every item and to their number.

Item `i` stands at the key `rlp(i)`, read as half bytes. Keys are prefix-free, so no branch holds a value. A node whose
encoding is shorter than a hash stands in its parent itself, any other by its hash.

A proof is the encoded nodes on the way from the root to the item, without those that stand in their parents. Whoever
knows the root alone follows it: every node must have the hash its parent names, and none may be left over.
"""

from collections.abc import Callable, Sequence

from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.ethereum import rlp
from proofcast.ethereum.keccak import HASH_LENGTH, keccak256
from proofcast.ethereum.rlp import Item

Leaf = tuple[bytes, bytes]
"""Half bytes of the key, one to a byte, and the item."""
Remember = Callable[[bytes, bytes], None]
"""Called with the hash and the encoding of every node that does not stand in its parent."""

WIDTH = 16
HINT = "get the proof again, from another source"
EMPTY_ROOT = keccak256(rlp.encode(b""))


def compute_ordered_root(items: Sequence[bytes]) -> bytes:
    return build_trie(items, lambda _hash, _node: None)


def build_proof(items: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """The nodes that prove what stands at `index`."""
    return Prover(items).build(index)


class Prover:
    """Proofs of any item of one list, of which the trie is built once."""

    def __init__(self, items: Sequence[bytes]) -> None:
        self._count, self._nodes = len(items), dict[bytes, bytes]()
        self._root = build_trie(items, self._nodes.__setitem__)

    def build(self, index: int) -> tuple[bytes, ...]:
        if not 0 <= index < self._count:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT, f"there is no item `{index}` of `{self._count}`", hint="count from 0"
            )
        path: list[bytes] = []

        def load(reference: bytes) -> bytes:
            path.append(self._nodes[reference])
            return path[-1]

        follow(self._root, compute_key(index), load)
        return tuple(path)


def verify_proof(root: bytes, index: int, proof: Sequence[bytes]) -> bytes:
    """The item that the root has at `index`."""
    return verify_path(root, compute_key(index), f"item `{index}`", proof)


def verify_value(root: bytes, key: bytes, proof: Sequence[bytes]) -> bytes:
    """What a trie of state or storage, whose keys are hashed, has at `key`; that there is something must be proven."""
    return verify_path(root, split_bytes(keccak256(key)), f"`0x{key.hex()}`", proof)


def verify_path(root: bytes, path: bytes, name: str, proof: Sequence[bytes]) -> bytes:
    unread = list(reversed(proof))

    def load(reference: bytes) -> bytes:
        if not unread:
            raise disagree(f"the proof of {name} ends before the node `{reference.hex()}`")
        node = unread.pop()
        found = keccak256(node)
        if found != reference:
            raise disagree(f"a node of the proof has the hash `{found.hex()}` instead of `{reference.hex()}`")
        return node

    item = follow(root, path, load)
    if unread:
        raise disagree(f"the proof of {name} has `{len(unread)}` nodes too many")
    return item


def disagree(message: str) -> InvalidInput:
    return InvalidInput(Reason.DISAGREES, message, hint=HINT)


def malformed(message: str) -> InvalidInput:
    return InvalidInput(Reason.MALFORMED, message, hint=HINT)


# --- building


def build_trie(items: Sequence[bytes], remember: Remember) -> bytes:
    """The root."""
    if not items:
        return EMPTY_ROOT
    leaves = sorted((compute_key(index), item) for index, item in enumerate(items))
    node = rlp.encode(build_node(leaves, 0, remember))
    root = keccak256(node)
    remember(root, node)
    return root


def compute_key(index: int) -> bytes:
    return split_bytes(rlp.encode(rlp.encode_integer(index)))


def split_bytes(data: bytes) -> bytes:
    """Half bytes, one to a byte."""
    return bytes(int(digit, WIDTH) for digit in data.hex())


def build_node(leaves: Sequence[Leaf], depth: int, remember: Remember) -> Item:
    """The node over sorted leaves whose keys agree up to `depth`."""
    first, last = leaves[0][0], leaves[-1][0]
    if len(leaves) == 1:
        return [encode_path(first[depth:], is_leaf=True), leaves[0][1]]
    fork = depth
    while first[fork] == last[fork]:
        fork += 1
    branch = build_branch(leaves, fork, remember)
    if fork == depth:
        return branch
    return [encode_path(first[depth:fork], is_leaf=False), compute_reference(branch, remember)]


def build_branch(leaves: Sequence[Leaf], depth: int, remember: Remember) -> Item:
    groups: list[list[Leaf]] = [[] for _ in range(WIDTH)]
    for leaf in leaves:
        groups[leaf[0][depth]].append(leaf)
    children = [
        compute_reference(build_node(group, depth + 1, remember), remember) if group else b"" for group in groups
    ]
    return [*children, b""]


def compute_reference(node: Item, remember: Remember) -> Item:
    """What stands for a node in its parent."""
    encoded = rlp.encode(node)
    if len(encoded) < HASH_LENGTH:
        return node
    reference = keccak256(encoded)
    remember(reference, encoded)
    return reference


def encode_path(path: bytes, *, is_leaf: bool) -> bytes:
    """Half bytes packed behind a flag: 2 for a leaf, 1 for an odd number of them."""
    flag = 2 * is_leaf + len(path) % 2
    padded = bytes((flag,)) + (b"" if len(path) % 2 else b"\0") + path
    return bytes(high << 4 | low for high, low in zip(padded[::2], padded[1::2], strict=True))


# --- following


def follow(root: bytes, key: bytes, load: Callable[[bytes], bytes]) -> bytes:
    """The item at a key of half bytes; `load` gives the node that has a hash."""
    node, arrived = rlp.decode(load(root)), False
    while not arrived:
        reference, key, arrived = take_step(node, key)
        node = rlp.decode(load(reference)) if isinstance(reference, bytes) and not arrived else reference
    if not isinstance(node, bytes):
        raise malformed("a list stands where the proven item belongs")
    return node


def take_step(node: Item, key: bytes) -> tuple[Item, bytes, bool]:
    """What the node has for the key, the part of the key not yet used, and whether this is the item itself."""
    if isinstance(node, list) and len(node) == WIDTH + 1:
        child = node[key[0]] if key else b""
        if child == b"":
            raise disagree(f"the proof has nothing at `{key.hex()}`")
        return child, key[1:], False
    if isinstance(node, list) and len(node) == 2 and isinstance(node[0], bytes):
        is_leaf, path = parse_path(node[0])
        if (key if is_leaf else key[: len(path)]) != path:
            raise disagree(f"the proof leads along `{path.hex()}` instead of `{key.hex()}`")
        return node[1], key[len(path) :], is_leaf
    raise malformed("a node of the proof is no trie node")


def parse_path(packed: bytes) -> tuple[bool, bytes]:
    """Is it a leaf's, and the half bytes."""
    halves = split_bytes(packed)
    is_odd = bool(halves) and halves[0] % 2 == 1
    path = halves[1 if is_odd else 2 :]
    if not halves or encode_path(path, is_leaf=halves[0] >= 2) != packed:
        raise malformed(f"`{packed.hex()}` is no path of a trie node")
    return halves[0] >= 2, path
