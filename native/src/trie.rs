//! The root of the Merkle Patricia trie over a list; the definition is `proofcast/ethereum/trie.py`.
//!
//! The keys depend on the number of items alone, so the shape is laid out first, children before parents and every node with
//! its height above the leaves. Then all nodes of one height are encoded and hashed side by side, leaves first.

use crate::keccak::{HASH, Hash, Width};
use alloy_rlp::{EMPTY_STRING_CODE, Encodable, Header};
use arrayvec::ArrayVec;

const FANOUT: usize = 16;
/// At most: what a leaf adds to its item.
const LEAF_BYTES: usize = 16;
/// `keccak256(rlp(""))`
const EMPTY_ROOT: Hash = [
    0x56, 0xe8, 0x1f, 0x17, 0x1b, 0xcc, 0x55, 0xa6, 0xff, 0x83, 0x45, 0xe6, 0x92, 0xc0, 0xf8, 0x6e, 0x5b, 0x48, 0xe0,
    0x1b, 0x99, 0x6c, 0xad, 0xc0, 0x01, 0x62, 0x2f, 0xb5, 0xe3, 0x63, 0xb4, 0x21,
];

type Path = ArrayVec<u8, 10>;
/// What stands for a node in its parent: its hash as a string, or the node itself where it is shorter than a hash.
type Reference = ArrayVec<u8, 33>;

struct Node {
    height: usize,
    kind: Kind,
}

enum Kind {
    Leaf { path: Path, item: usize },
    Extension { path: Path, child: usize },
    Branch { children: Box<[Option<usize>; FANOUT]> },
}

/// The root of `items`, item `i` at the key `rlp(i)`.
pub fn compute_ordered_root<B: AsRef<[u8]>>(items: &[B], width: &Width) -> Hash {
    if items.is_empty() {
        return EMPTY_ROOT;
    }
    let nodes = lay_out(items.len());
    let mut references = vec![Reference::new(); nodes.len()];
    let mut encoded = Vec::with_capacity(items.iter().map(|item| item.as_ref().len() + LEAF_BYTES).sum());
    let mut root = EMPTY_ROOT;
    for height in 0..=nodes[nodes.len() - 1].height {
        let members: Vec<usize> = (0..nodes.len()).filter(|&at| nodes[at].height == height).collect();
        let mut ends = vec![0];
        encoded.clear();
        for &at in &members {
            encode(&nodes[at].kind, items, &references, &mut encoded);
            ends.push(encoded.len());
        }
        let messages: Vec<&[u8]> = ends.windows(2).map(|pair| &encoded[pair[0]..pair[1]]).collect();
        let hashes = width.hash_all(&messages);
        root = hashes[hashes.len() - 1];
        for ((at, message), hash) in members.into_iter().zip(messages).zip(hashes) {
            references[at] = get_reference(message, &hash);
        }
    }
    root
}

// --- encoding

fn get_reference(encoded: &[u8], hash: &Hash) -> Reference {
    let mut reference = Reference::new();
    if encoded.len() < HASH {
        reference.extend(encoded.iter().copied());
    } else {
        reference.push(EMPTY_STRING_CODE + HASH as u8);
        reference.extend(*hash);
    }
    reference
}

fn encode<B: AsRef<[u8]>>(kind: &Kind, items: &[B], references: &[Reference], out: &mut Vec<u8>) {
    match kind {
        Kind::Leaf { path, item } => {
            let item = items[*item].as_ref();
            encode_list_head(path.as_slice().length() + item.length(), out);
            path.as_slice().encode(out);
            item.encode(out);
        }
        Kind::Extension { path, child } => {
            encode_list_head(path.as_slice().length() + references[*child].len(), out);
            path.as_slice().encode(out);
            out.extend_from_slice(&references[*child]);
        }
        Kind::Branch { children } => {
            let get = |child: &Option<usize>| child.map_or(&[EMPTY_STRING_CODE][..], |at| &references[at]);
            encode_list_head(children.iter().map(|child| get(child).len()).sum::<usize>() + 1, out);
            children.iter().for_each(|child| out.extend_from_slice(get(child)));
            out.push(EMPTY_STRING_CODE);
        }
    }
}

fn encode_list_head(payload_length: usize, out: &mut Vec<u8>) {
    Header { list: true, payload_length }.encode(out);
}

// --- the shape

struct Key {
    /// Half bytes of `rlp(item)`, one to a byte.
    path: Path,
    item: usize,
}

/// Every node, children before parents and so the root last.
fn lay_out(count: usize) -> Vec<Node> {
    // The order of the keys: a small index is its own byte, zero is 0x80, any other begins with its length above that.
    let order = (1..count.min(0x80)).chain([0]).chain(0x80..count);
    let keys: Vec<Key> = order.map(|item| Key { path: compute_path(item), item }).collect();
    let mut nodes = Vec::with_capacity(count + count / 8 + 2);
    add_node(&keys, 0, &mut nodes);
    nodes
}

fn compute_path(item: usize) -> Path {
    alloy_rlp::encode_fixed_size(&(item as u32)).iter().flat_map(|byte| [byte >> 4, byte & 15]).collect()
}

/// Adds the node over sorted keys that agree up to `depth`, and those below it; returns its place.
fn add_node(keys: &[Key], depth: usize, nodes: &mut Vec<Node>) -> usize {
    let (first, last) = (&keys[0].path, &keys[keys.len() - 1].path);
    if keys.len() == 1 {
        let kind = Kind::Leaf { path: pack_path(&first[depth..], 2), item: keys[0].item };
        nodes.push(Node { height: 0, kind });
        return nodes.len() - 1;
    }
    let fork = (depth..).find(|&at| first[at] != last[at]).expect("two keys differ");
    let branch = add_branch(keys, fork, nodes);
    if fork > depth {
        let kind = Kind::Extension { path: pack_path(&first[depth..fork], 0), child: branch };
        nodes.push(Node { height: nodes[branch].height + 1, kind });
    }
    nodes.len() - 1
}

fn add_branch(keys: &[Key], depth: usize, nodes: &mut Vec<Node>) -> usize {
    let mut children = Box::new([None; FANOUT]);
    let mut height = 0;
    for group in keys.chunk_by(|left, right| left.path[depth] == right.path[depth]) {
        let child = add_node(group, depth + 1, nodes);
        height = height.max(nodes[child].height + 1);
        children[group[0].path[depth] as usize] = Some(child);
    }
    nodes.push(Node { height, kind: Kind::Branch { children } });
    nodes.len() - 1
}

/// Half bytes packed behind a flag: 2 for a leaf, 1 for an odd number of them.
fn pack_path(path: &[u8], flag: u8) -> Path {
    let odd = path.len() % 2;
    let first = (flag + odd as u8) << 4 | if odd == 1 { path[0] } else { 0 };
    let rest = path[odd..].chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]);
    std::iter::once(first).chain(rest).collect()
}
