//! What clients get of a signed epoch; the definition is `proofcast/groups/shard_close.py`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::Range;

use super::hashing::Places;
use super::wire::{
    ID, INDEX_BITS, LeafId, Message, RECEIVED, Reader, SENT, SERIES_ENTRY, Series, VERSION, parse_entries, parse_series,
};

const PACKET_HEAD: usize = 2;
/// Bytes of a checkpoint and its signature.
const SIGNED: usize = 120 + 64;
const COUNT: usize = 4;
/// Bytes of a receipt: counter and first sequence.
const RECEIPT: usize = 16;

/// Where the bytes of one item come from: what all recipients of a message share, and what is one's own.
struct Item<'a> {
    /// In `Filling::shared`.
    shared: Range<usize>,
    own: &'a [u8],
}

/// One client's packet of one kind, before its bytes are laid out.
struct Packet<'a> {
    leaf: LeafId,
    /// Leaf and path.
    attestation: &'a [u8],
    items: Vec<Item<'a>>,
    /// Receipts, or nothing.
    receipts: Vec<u8>,
    size: usize,
    /// Counter of the last series it has a receipt for.
    counter: u64,
}

/// A signed checkpoint, packets in the order of its close, where each stands, and what their items share.
struct Filling<'a> {
    signed: &'a [u8],
    packets: Vec<Packet<'a>>,
    places: Places,
    /// One after the other.
    shared: Vec<u8>,
}

fn parse_close<'a>(reader: &mut Reader<'a>) -> Option<Filling<'a>> {
    let signed = reader.take(SIGNED)?;
    let count = reader.number(COUNT)?;
    let (mut packets, mut places) = (Vec::with_capacity(count), Places::default());
    for place in 0..count {
        let leaf = (reader.take(1)?[0], *reader.id()?);
        let length = reader.number(2)?;
        let attestation = reader.take(length)?;
        places.insert(leaf, place);
        let size = PACKET_HEAD + SIGNED + length + COUNT;
        packets.push(Packet { leaf, attestation, items: vec![], receipts: vec![], size, counter: 0 });
    }
    Some(Filling { signed, packets, places, shared: vec![] })
}

impl<'a> Packet<'a> {
    fn push_receipt(&mut self, counter: &[u8], sequence: u64) {
        self.receipts.extend_from_slice(counter);
        self.receipts.extend_from_slice(&sequence.to_be_bytes());
        self.counter = counter.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        self.size += RECEIPT;
    }

    fn write(&self, signed: &[u8], shared: &[u8], data: &mut [u8]) {
        let count = (self.items.len() + self.receipts.len() / RECEIPT) as u32;
        let mut at = 0;
        let mut put = |part: &[u8]| {
            data[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&[VERSION, self.leaf.0]);
        put(signed);
        put(self.attestation);
        put(&count.to_be_bytes());
        put(&self.receipts);
        for item in &self.items {
            put(&shared[item.shared.clone()]);
            put(item.own);
        }
    }
}

impl<'a> Filling<'a> {
    /// Take the receipts and deliveries of a series that begins at `first`.
    fn take(&mut self, series: &Series<'a>, digest: &[u8], first: u64) {
        if let Some(&place) = self.places.get(&(SENT, *series.sender)) {
            self.packets[place].push_receipt(series.counter, first);
        }
        let count = (series.messages.len() as u16).to_be_bytes();
        for (index, message) in series.messages.iter().enumerate() {
            let (number, place) = ((first + index as u64).to_be_bytes(), (index as u16).to_be_bytes());
            let begin = self.shared.len();
            let head: [&[u8]; 6] = [&number, series.sender, digest, &place, &count, message.opening];
            head.iter().for_each(|part| self.shared.extend_from_slice(part));
            message.envelopes.iter().for_each(|envelope| self.shared.extend_from_slice(envelope.recipient));
            self.deliver(message, begin..self.shared.len());
        }
    }

    fn deliver(&mut self, message: &Message<'a>, shared: Range<usize>) {
        for envelope in &message.envelopes {
            if let Some(&place) = self.places.get(&(RECEIVED, *envelope.recipient)) {
                let packet = &mut self.packets[place];
                packet.size += shared.len() + envelope.sealed.len();
                packet.items.push(Item { shared: shared.clone(), own: envelope.sealed });
            }
        }
    }
}

type Filled<'py> = (u8, Bound<'py, PyBytes>, Bound<'py, PyBytes>, u64);

/// From a frame and what a shard is told of its close to packets: (kind, client, packet, counter of its last receipt).
#[pyfunction]
pub fn make_packets<'py>(py: Python<'py>, epoch: u64, body: &[u8], close: &[u8]) -> PyResult<Vec<Filled<'py>>> {
    let refuse = || PyValueError::new_err("the frame or its close is malformed");
    let mut reader = Reader { data: close, at: 0 };
    let mut filling = parse_close(&mut reader).ok_or_else(refuse)?;
    let mut sequence = epoch << INDEX_BITS;
    let entries = parse_entries(body).filter(|(kind, ..)| *kind == SERIES_ENTRY);
    for ((.., entry), digest) in entries.zip(close[reader.at..].chunks_exact(ID)) {
        let series = parse_series(entry).ok_or_else(refuse)?;
        filling.take(&series, digest, sequence);
        sequence += series.messages.len() as u64;
    }
    let give = |packet: &Packet| {
        let lay = |data: &mut [u8]| {
            packet.write(filling.signed, &filling.shared, data);
            Ok(())
        };
        let (kind, client) = packet.leaf;
        Ok((kind, PyBytes::new(py, &client), PyBytes::new_with(py, packet.size, lay)?, packet.counter))
    };
    filling.packets.iter().map(give).collect()
}
