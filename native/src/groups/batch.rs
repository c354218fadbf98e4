//! What clients ask for: batches of series, and the other entries of a frame.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeSet;

use super::wire::{Id, Reader, SERIES_ENTRY, parse_entries, parse_series};

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
