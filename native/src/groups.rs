//! Frames of the group server; the definitions are `proofcast/groups/series.py`, `epoch.py` and `server.py`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
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
/// Bytes of a receipt: counter and first sequence.
const RECEIPT: usize = 16;
/// Bytes of an encoded leaf: kind, client, two sequences, rows digest, salt.
const LEAF: usize = 1 + ID + 8 + 8 + ID + ID;

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

/// Kind, client and body of every entry of a frame that is no series.
#[pyfunction]
pub fn list_requests<'py>(py: Python<'py>, body: &[u8]) -> Vec<(u8, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let requests = parse_entries(body).filter(|(kind, ..)| *kind != SERIES_ENTRY);
    requests.map(|(kind, client, entry)| (kind, PyBytes::new(py, client), PyBytes::new(py, entry))).collect()
}

type Counts = (u64, usize, usize, usize);

/// Of a list of series (length | series): sender; counter of the first, number of series, of messages, bytes of the
/// last; all recipients; the entries for the log. None where it is malformed or the series do not follow one another.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn check_batch<'py>(
    py: Python<'py>,
    data: &[u8],
) -> Option<(Bound<'py, PyBytes>, Counts, Vec<Bound<'py, PyBytes>>, Bound<'py, PyBytes>)> {
    let mut reader = Reader { data, at: 0 };
    let (mut sender, mut counts): (Option<&Id>, Counts) = (None, (0, 0, 0, 0));
    let mut recipients: BTreeSet<&Id> = BTreeSet::new();
    let mut entries = Vec::with_capacity(data.len() + data.len() / 16);
    while reader.at < data.len() {
        let length = reader.number(4)?;
        let bytes = reader.take(length)?;
        let series = parse_series(bytes)?;
        let counter = u64::from_be_bytes(series.counter.try_into().ok()?);
        if sender.is_none() {
            counts.0 = counter;
        }
        if *sender.get_or_insert(series.sender) != series.sender || counter != counts.0.checked_add(counts.1 as u64)? {
            return None;
        }
        counts = (counts.0, counts.1 + 1, counts.2 + series.messages.len(), length);
        recipients.extend(series.messages.iter().flat_map(|one| &one.envelopes).map(|envelope| envelope.recipient));
        entries.push(SERIES_ENTRY);
        entries.extend_from_slice(series.sender);
        entries.extend_from_slice(&(length as u32).to_be_bytes());
        entries.extend_from_slice(bytes);
    }
    let recipients = recipients.into_iter().map(|one| PyBytes::new(py, one)).collect();
    Some((PyBytes::new(py, sender?), counts, recipients, PyBytes::new(py, &entries)))
}

/// HMAC-SHA256 with a key of at most one block.
fn authenticate(key: &[u8], parts: &[&[u8]]) -> Id {
    let mut pads = [[0x36; 64], [0x5c; 64]];
    pads.iter_mut().for_each(|pad| pad.iter_mut().zip(key).for_each(|(byte, own)| *byte ^= own));
    let mut inner = vec![&pads[0][..]];
    inner.extend(parts);
    hash(&[&pads[1], &hash(&inner)])
}

/// The leaves of a frame, encoded; the digests of its series; its number of messages. `ends` says where the last leaf
/// of each kind and client ended.
#[pyfunction]
pub fn make_leaves<'py>(
    py: Python<'py>,
    epoch: u64,
    body: &[u8],
    secret: &[u8],
    ends: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, u64)> {
    let (mut rows, mut digests, mut sequence) = (ByLeaf::default(), vec![], epoch << INDEX_BITS);
    for (kind, client, entry) in parse_entries(body) {
        if kind == SERIES_ENTRY {
            let series = parse_series(entry).ok_or_else(|| PyValueError::new_err("the frame holds a bad series"))?;
            digests.extend(push_series(&mut rows, &series, sequence));
            sequence += series.messages.len() as u64;
        } else if kind == DEMAND_ENTRY {
            rows.touch((SENT, *client));
            rows.touch((RECEIVED, *client));
        }
    }
    let mut leaves = Vec::with_capacity(LEAF * rows.leaves.len());
    for ((kind, client), count, bytes) in &rows.leaves {
        let digest = hash(&[b"pcg1/rws", &count.to_be_bytes(), bytes]);
        let salt = authenticate(secret, &[b"pcg1/slt", &epoch.to_be_bytes(), &[*kind], client]);
        let name = [&[*kind], &client[..]].concat();
        let end = ends.get_item(PyBytes::new(py, &name))?;
        let end: u64 = end.map_or(Ok(0), |end| end.extract())?;
        let next = (epoch + 1) << INDEX_BITS;
        let parts: [&[u8]; 5] = [&name, &end.to_be_bytes(), &next.to_be_bytes(), &digest, &salt];
        parts.iter().for_each(|part| leaves.extend_from_slice(part));
    }
    Ok((PyBytes::new(py, &leaves), PyBytes::new(py, &digests), sequence - (epoch << INDEX_BITS)))
}

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

/// Where the bytes of one item come from: what all recipients of a message share, and what is one's own.
struct Item<'a> {
    /// Place in `Filling::shared`.
    shared: usize,
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
    places: HashMap<LeafId, usize>,
    shared: Vec<Vec<u8>>,
}

const PACKET_HEAD: usize = 2;
/// Bytes of a checkpoint and its signature.
const SIGNED: usize = 120 + 64;
const COUNT: usize = 4;

fn parse_close<'a>(reader: &mut Reader<'a>) -> Option<Filling<'a>> {
    let signed = reader.take(SIGNED)?;
    let count = reader.number(COUNT)?;
    let (mut packets, mut places) = (Vec::with_capacity(count), HashMap::with_capacity(count));
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

    fn write(&self, signed: &[u8], shared: &[Vec<u8>], data: &mut [u8]) {
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
            put(&shared[item.shared]);
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
            let recipients: Vec<u8> = message.envelopes.iter().flat_map(|envelope| *envelope.recipient).collect();
            let head: [&[u8]; 7] = [&number, series.sender, digest, &place, &count, message.opening, &recipients];
            self.shared.push(head.concat());
            self.deliver(message);
        }
    }

    fn deliver(&mut self, message: &Message<'a>) {
        let shared = self.shared.len() - 1;
        for envelope in &message.envelopes {
            if let Some(&place) = self.places.get(&(RECEIVED, *envelope.recipient)) {
                let packet = &mut self.packets[place];
                packet.items.push(Item { shared, own: envelope.sealed });
                packet.size += self.shared[shared].len() + envelope.sealed.len();
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
