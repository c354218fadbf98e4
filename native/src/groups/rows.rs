//! From messages to the rows of everybody's leaves; the definition is `proofcast/groups/epoch.py`.

use sha2::{Digest, Sha256};
use std::collections::HashMap;

use super::wire::{ID, Id, LeafId, Message, RECEIVED, SALT, SENT, Series};

pub(super) fn hash(parts: &[&[u8]]) -> Id {
    let mut state = Sha256::new();
    parts.iter().for_each(|part| state.update(part));
    state.finalize().into()
}

/// The digests of a message that do not depend on where it stands.
struct Description {
    sender: Id,
    common: Id,
    /// name | ciphertext digest of every recipient
    pairs: Vec<u8>,
    digest: Id,
}

fn describe(message: &Message, sender: &Id) -> Description {
    let salt = &message.common[1..1 + SALT];
    let mut pairs = Vec::with_capacity(2 * ID * message.envelopes.len());
    let mut sender_name = [0; ID];
    for envelope in &message.envelopes {
        let blind = hash(&[b"pcg1/bln", salt, envelope.recipient]);
        let name = hash(&[b"pcg1/who", &blind, envelope.recipient]);
        if envelope.recipient == sender {
            sender_name = name;
        }
        pairs.extend(name);
        pairs.extend(hash(&[b"pcg1/cip", &envelope.sealed[..1], &envelope.sealed[3..]]));
    }
    let common = hash(&[b"pcg1/com", message.common]);
    let size = (message.envelopes.len() as u16).to_be_bytes();
    let digest = hash(&[b"pcg1/msg", &sender_name, &common, &size, &pairs]);
    Description { sender: sender_name, common, pairs, digest }
}

/// Byte strings by leaf, in the order in which the leaves first occur.
#[derive(Default)]
pub(super) struct ByLeaf {
    places: HashMap<LeafId, usize>,
    pub(super) leaves: Vec<(LeafId, u32, Vec<u8>)>,
}

impl ByLeaf {
    pub(super) fn touch(&mut self, leaf: LeafId) -> &mut (LeafId, u32, Vec<u8>) {
        let place = *self.places.entry(leaf).or_insert(self.leaves.len());
        if place == self.leaves.len() {
            self.leaves.push((leaf, 0, vec![]));
        }
        &mut self.leaves[place]
    }

    fn push(&mut self, leaf: LeafId, parts: &[&[u8]]) {
        let (_, count, bytes) = self.touch(leaf);
        *count += 1;
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
    }
}

fn push_row(rows: &mut ByLeaf, leaf: LeafId, sequence: u64, row: &[u8]) {
    rows.push(leaf, &[&sequence.to_be_bytes(), &hash(&[row])]);
}

/// Add the rows of one message to the leaves of its sender and recipients.
fn push_message(rows: &mut ByLeaf, head: &[u8], sequence: u64, sender: &Id, message: &Message, pairs: &[u8]) {
    let mut row = [head, pairs].concat();
    push_row(rows, (SENT, *sender), sequence, &row);
    let place = |at: usize| head.len() + 2 * ID * at + ID..head.len() + 2 * ID * (at + 1);
    (0..message.envelopes.len()).for_each(|at| row[place(at)].fill(0));
    for (at, envelope) in message.envelopes.iter().enumerate() {
        row[place(at)].copy_from_slice(&pairs[2 * ID * at + ID..2 * ID * (at + 1)]);
        push_row(rows, (RECEIVED, *envelope.recipient), sequence, &row);
        row[place(at)].fill(0);
    }
}

/// Add the rows of a series that begins at `first`; its digest.
pub(super) fn push_series(rows: &mut ByLeaf, series: &Series, first: u64) -> Id {
    let described: Vec<_> = series.messages.iter().map(|message| describe(message, series.sender)).collect();
    let count = (described.len() as u16).to_be_bytes();
    let digests: Vec<u8> = described.iter().flat_map(|one| one.digest).collect();
    let digest = hash(&[b"pcg1/ser", series.sender, series.counter, &count, &digests]);
    for (index, (message, one)) in series.messages.iter().zip(&described).enumerate() {
        let sequence = first + index as u64;
        let place = (index as u16).to_be_bytes();
        let size = (message.envelopes.len() as u16).to_be_bytes();
        let number = sequence.to_be_bytes();
        let head: [&[u8]; 8] = [b"pcg1/row", &number, &digest, &place, &count, &one.sender, &one.common, &size];
        push_message(rows, &head.concat(), sequence, series.sender, message, &one.pairs);
    }
    digest
}
