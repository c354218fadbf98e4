//! The leaves of a frame; the definition is `make_leaves` in `proofcast/groups/kernel.py`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::hashing::hash;
use super::rows::{ByLeaf, push_series};
use super::wire::{DEMAND_ENTRY, ID, INDEX_BITS, Id, RECEIVED, SENT, SERIES_ENTRY, parse_entries, parse_series};

/// Bytes of an encoded leaf: kind, client, two sequences, rows digest, salt.
pub(super) const LEAF: usize = 1 + ID + 8 + 8 + ID + ID;

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
