//! SHA-256 of a few pieces, and places by leaf.

use ahash::RandomState;
use sha2::{Digest, Sha256, compress256};
use std::collections::HashMap;

use super::wire::{Id, LeafId};

/// Keyed, because clients choose their keys.
pub(super) type Places = HashMap<LeafId, usize, RandomState>;

const BLOCK: usize = 64;
const SHORT: usize = 6 * BLOCK;
/// Bytes of padding at least: a bit, and the length.
const PADDING: usize = 9;
const INITIAL: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

pub(super) fn hash(parts: &[&[u8]]) -> Id {
    let length = parts.iter().map(|part| part.len()).sum();
    if length + PADDING <= SHORT { hash_short(parts, length) } else { hash_long(parts) }
}

fn hash_long(parts: &[&[u8]]) -> Id {
    let mut state = Sha256::new();
    parts.iter().for_each(|part| state.update(part));
    state.finalize().into()
}

/// Laid out and padded here, compressed at once: most of what is hashed has three or four pieces of a few bytes, and
/// passing each through the hasher's buffer costs more than the hashing.
fn hash_short(parts: &[&[u8]], length: usize) -> Id {
    let mut blocks = [[0; BLOCK]; SHORT / BLOCK];
    let bytes = blocks.as_flattened_mut();
    let mut at = 0;
    for part in parts {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    bytes[length] = 0x80;
    let count = (length + PADDING).div_ceil(BLOCK);
    bytes[count * BLOCK - 8..count * BLOCK].copy_from_slice(&(8 * length as u64).to_be_bytes());
    let mut state = INITIAL;
    compress256(&mut state, &blocks.map(Into::into)[..count]);
    let mut digest = Id::default();
    digest.chunks_exact_mut(4).zip(state).for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
    digest
}
