//! From messages to the rows of everybody's leaves; the definition is `proofcast/groups/epoch.py`.

use sha2::{Digest, Sha256};

use super::hashing::{Places, hash};
use super::wire::{ID, Id, LeafId, Message, RECEIVED, SALT, SENT, Series};

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
    places: Places,
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

fn push_row(rows: &mut ByLeaf, leaf: LeafId, sequence: u64, row: Sha256) {
    rows.push(leaf, &[&sequence.to_be_bytes(), &row.finalize()]);
}

/// Add the rows of one message to the leaves of its sender and recipients. A recipient's row hides the ciphertexts of
/// all others, so those before it are hashed once for all that follow.
fn push_message(rows: &mut ByLeaf, head: &[u8], sequence: u64, sender: &Id, message: &Message, pairs: &[u8]) {
    let mut before = Sha256::new_with_prefix(head);
    push_row(rows, (SENT, *sender), sequence, before.clone().chain_update(pairs));
    let mut hidden = pairs.to_vec();
    hidden.chunks_exact_mut(2 * ID).for_each(|pair| pair[ID..].fill(0));
    for (at, envelope) in message.envelopes.iter().enumerate() {
        let own = 2 * ID * at..2 * ID * (at + 1);
        let row = before.clone().chain_update(&pairs[own.clone()]).chain_update(&hidden[own.end..]);
        push_row(rows, (RECEIVED, *envelope.recipient), sequence, row);
        before.update(&hidden[own]);
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
