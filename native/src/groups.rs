//! Frames of the group server; the definitions are `proofcast/groups/series.py`, `epoch.py` and `server.py`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};

const VERSION: u8 = 1;
const MESSAGES_MAX: usize = 1_024;
const RECIPIENTS_MAX: usize = 1_024;
const COMMON_MAX: usize = 1 << 20;
const CIPHERTEXT_MAX: usize = 1_024;
const FORM_MAX: u8 = 2;
const SALT: usize = 16;
const ID: usize = 32;
const INDEX_BITS: u64 = 20;

const SENT: u8 = 0;
const RECEIVED: u8 = 1;
const SERIES_ENTRY: u8 = 1;
const DEMAND_ENTRY: u8 = 5;

type Id = [u8; ID];
type LeafId = (u8, Id);

struct Envelope<'a> {
    recipient: &'a Id,
    /// form | length | ciphertext
    sealed: &'a [u8],
}

struct Message<'a> {
    /// length | common ciphertext | number of recipients
    opening: &'a [u8],
    common: &'a [u8],
    envelopes: Vec<Envelope<'a>>,
}

struct Series<'a> {
    sender: &'a Id,
    counter: &'a [u8],
    messages: Vec<Message<'a>>,
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let piece = self.data.get(self.at..self.at.checked_add(size)?)?;
        self.at += size;
        Some(piece)
    }

    fn id(&mut self) -> Option<&'a Id> {
        self.take(ID)?.try_into().ok()
    }

    fn number(&mut self, size: usize) -> Option<usize> {
        Some(self.take(size)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    fn count(&mut self, size: usize, limit: usize) -> Option<usize> {
        self.number(size).filter(|&number| number <= limit)
    }
}

fn parse_series(data: &[u8]) -> Option<Series<'_>> {
    let mut reader = Reader { data, at: 0 };
    if reader.take(1)? != [VERSION] {
        return None;
    }
    let (sender, counter) = (reader.id()?, reader.take(8)?);
    let count = reader.count(2, MESSAGES_MAX)?;
    let messages = (0..count).map(|_| parse_message(&mut reader, sender)).collect::<Option<Vec<_>>>()?;
    (reader.at == data.len() && count > 0).then_some(Series { sender, counter, messages })
}

fn parse_message<'a>(reader: &mut Reader<'a>, sender: &Id) -> Option<Message<'a>> {
    let begin = reader.at;
    let length = reader.count(4, COMMON_MAX)?;
    let common = reader.take(length).filter(|common| common.len() > SALT)?;
    let size = reader.count(2, RECIPIENTS_MAX)?;
    let opening = &reader.data[begin..reader.at];
    let envelopes = (0..size).map(|_| parse_envelope(reader)).collect::<Option<Vec<_>>>()?;
    let is_sorted = envelopes.windows(2).all(|pair| pair[0].recipient < pair[1].recipient);
    let has_sender = envelopes.iter().any(|envelope| envelope.recipient == sender);
    (is_sorted && has_sender).then_some(Message { opening, common, envelopes })
}

fn parse_envelope<'a>(reader: &mut Reader<'a>) -> Option<Envelope<'a>> {
    let recipient = reader.id()?;
    let begin = reader.at;
    let form = reader.take(1)?[0];
    let length = reader.count(2, CIPHERTEXT_MAX)?;
    reader.take(length)?;
    (form <= FORM_MAX).then_some(Envelope { recipient, sealed: &reader.data[begin..reader.at] })
}

/// The kind, client and body of each entry of a frame.
fn parse_entries(body: &[u8]) -> impl Iterator<Item = (u8, &Id, &[u8])> {
    let mut reader = Reader { data: body, at: 0 };
    std::iter::from_fn(move || {
        let kind = reader.take(1)?[0];
        let client = reader.id()?;
        let length = reader.number(4)?;
        Some((kind, client, reader.take(length)?))
    })
}

fn hash(parts: &[&[u8]]) -> Id {
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
struct ByLeaf {
    places: HashMap<LeafId, usize>,
    leaves: Vec<(LeafId, u32, Vec<u8>)>,
}

impl ByLeaf {
    fn touch(&mut self, leaf: LeafId) -> &mut (LeafId, u32, Vec<u8>) {
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
fn push_series(rows: &mut ByLeaf, series: &Series, first: u64) -> Id {
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

type LeafDigest<'py> = (u8, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Sender, counter, number of messages and all recipients of a series, or None where it is malformed.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn check_series<'py>(
    py: Python<'py>,
    data: &[u8],
) -> Option<(Bound<'py, PyBytes>, u64, usize, Vec<Bound<'py, PyBytes>>)> {
    let series = parse_series(data)?;
    let counter = u64::from_be_bytes(series.counter.try_into().ok()?);
    let recipients: BTreeSet<&Id> =
        series.messages.iter().flat_map(|message| &message.envelopes).map(|envelope| envelope.recipient).collect();
    let recipients = recipients.into_iter().map(|one| PyBytes::new(py, one)).collect();
    Some((PyBytes::new(py, series.sender), counter, series.messages.len(), recipients))
}

/// The leaves of a frame as (kind, client, rows digest), the digests of its series, and its number of messages.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn compute_leaf_digests<'py>(
    py: Python<'py>,
    epoch: u64,
    body: &[u8],
) -> Option<(Vec<LeafDigest<'py>>, Vec<Bound<'py, PyBytes>>, u64)> {
    let (mut rows, mut digests, mut sequence) = (ByLeaf::default(), vec![], epoch << INDEX_BITS);
    for (kind, client, entry) in parse_entries(body) {
        if kind == SERIES_ENTRY {
            let series = parse_series(entry)?;
            digests.push(PyBytes::new(py, &push_series(&mut rows, &series, sequence)));
            sequence += series.messages.len() as u64;
        } else if kind == DEMAND_ENTRY {
            rows.touch((SENT, *client));
            rows.touch((RECEIVED, *client));
        }
    }
    let close = |((kind, client), count, bytes): (LeafId, u32, Vec<u8>)| {
        let digest = hash(&[b"pcg1/rws", &count.to_be_bytes(), &bytes]);
        (kind, PyBytes::new(py, &client), PyBytes::new(py, &digest))
    };
    Some((rows.leaves.into_iter().map(close).collect(), digests, sequence - (epoch << INDEX_BITS)))
}

fn get_shard(client: &Id, shards: u64) -> u64 {
    let digest = hash(&[b"pcg1/shd", client]);
    u64::from_be_bytes(digest[..8].try_into().expect("eight bytes")) % shards
}

type Contents<'py> = (u8, Bound<'py, PyBytes>, u32, Bound<'py, PyBytes>);

/// What goes into the packets of one shard's clients: (kind, client, number of items, items).
#[pyfunction]
pub fn collect_contents<'py>(
    py: Python<'py>,
    epoch: u64,
    body: &[u8],
    digests: Vec<Vec<u8>>,
    shard: u64,
    shards: u64,
) -> Option<Vec<Contents<'py>>> {
    let mut owners: HashMap<Id, bool> = HashMap::new();
    let mut is_ours = |client: &Id| {
        shards == 1 || *owners.entry(*client).or_insert_with(|| get_shard(client, shards) == shard)
    };
    let (mut contents, mut sequence) = (ByLeaf::default(), epoch << INDEX_BITS);
    let series = parse_entries(body).filter(|(kind, ..)| *kind == SERIES_ENTRY).map(|(.., entry)| entry);
    for (entry, digest) in series.zip(&digests) {
        let series = parse_series(entry)?;
        if is_ours(series.sender) {
            contents.push((SENT, *series.sender), &[series.counter, &sequence.to_be_bytes()]);
        }
        let count = (series.messages.len() as u16).to_be_bytes();
        for (index, message) in series.messages.iter().enumerate() {
            let place = (index as u16).to_be_bytes();
            let recipients: Vec<u8> = message.envelopes.iter().flat_map(|envelope| *envelope.recipient).collect();
            let number = sequence.to_be_bytes();
            let shared: [&[u8]; 7] =
                [&number, series.sender, digest, &place, &count, message.opening, &recipients];
            let shared = shared.concat();
            for envelope in message.envelopes.iter().filter(|envelope| is_ours(envelope.recipient)) {
                contents.push((RECEIVED, *envelope.recipient), &[&shared, envelope.sealed]);
            }
            sequence += 1;
        }
    }
    let give = |((kind, client), count, bytes): (LeafId, u32, Vec<u8>)| {
        (kind, PyBytes::new(py, &client), count, PyBytes::new(py, &bytes))
    };
    Some(contents.leaves.into_iter().map(give).collect())
}
