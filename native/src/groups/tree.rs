//! The tree over an epoch's leaves; the definition is `proofcast/groups/prefix_tree.py`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::hashing::hash;
use super::leaves::LEAF;
use super::wire::{ID, Id};

/// A leaf on its way into the tree: position, hash, and the path grown so far, from the leaf up.
struct Hanging {
    position: Id,
    hash: Id,
    place: usize,
}

fn has_bit(position: &Id, bit: usize) -> bool {
    position[bit / 8] >> (7 - bit % 8) & 1 == 1
}

fn find_difference(one: &Id, other: &Id) -> usize {
    let at = (0..ID).find(|&at| one[at] != other[at]).expect("positions differ");
    8 * at + (one[at] ^ other[at]).leading_zeros() as usize
}

/// The root over sorted leaves; appends (bit | sibling) to the paths of all of them.
fn hang(leaves: &[Hanging], paths: &mut [Vec<u8>]) -> Id {
    let (first, last) = (&leaves[0], &leaves[leaves.len() - 1]);
    if leaves.len() == 1 {
        return first.hash;
    }
    let bit = find_difference(&first.position, &last.position);
    let (left, right) = leaves.split_at(leaves.partition_point(|leaf| !has_bit(&leaf.position, bit)));
    let (left_hash, right_hash) = (hang(left, paths), hang(right, paths));
    for (side, sibling) in [(left, &right_hash), (right, &left_hash)] {
        for leaf in side {
            paths[leaf.place].push(bit as u8);
            paths[leaf.place].extend_from_slice(sibling);
        }
    }
    hash(&[&[1, bit as u8], &left_hash, &right_hash])
}

/// The root of the tree of encoded leaves, and the encoded path of each.
#[pyfunction]
pub fn hang_leaves<'py>(
    py: Python<'py>,
    server_key: &[u8],
    epoch: u64,
    leaves: &[u8],
) -> (Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>) {
    let mut hanging: Vec<_> = leaves
        .chunks_exact(LEAF)
        .enumerate()
        .map(|(place, leaf)| Hanging {
            position: hash(&[b"pcg1/pos", &leaf[..1 + ID]]),
            hash: hash(&[b"\x00pcg1/lef", server_key, &epoch.to_be_bytes(), leaf]),
            place,
        })
        .collect();
    hanging.sort_unstable_by_key(|leaf| leaf.position);
    let mut paths = vec![vec![]; hanging.len()];
    let root = if hanging.is_empty() { hash(&[b"pcg1/emp"]) } else { hang(&hanging, &mut paths) };
    let encode = |path: Vec<u8>| {
        let depth = (path.len() / (1 + ID)) as u16;
        PyBytes::new(py, &[&depth.to_be_bytes(), &path[..]].concat())
    };
    (PyBytes::new(py, &root), paths.into_iter().map(encode).collect())
}
