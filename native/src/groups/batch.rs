//! What clients ask for: batches of series, and the other entries of a frame.

use ahash::RandomState;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;

use super::wire::{ID, Id, Reader, SERIES_ENTRY, parse_entries, parse_series};

/// Kind, client and body of every entry of a frame that is no series.
#[pyfunction]
pub fn list_requests<'py>(py: Python<'py>, body: &[u8]) -> Vec<(u8, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let requests = parse_entries(body).filter(|(kind, ..)| *kind != SERIES_ENTRY);
    requests.map(|(kind, client, entry)| (kind, PyBytes::new(py, client), PyBytes::new(py, entry))).collect()
}

/// Client and bytes of the last series of each client of a frame.
#[pyfunction]
pub fn list_last_series<'py>(py: Python<'py>, body: &[u8]) -> Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let series = parse_entries(body).filter(|(kind, ..)| *kind == SERIES_ENTRY);
    let last: HashMap<&Id, &[u8], RandomState> = series.map(|(_, client, entry)| (client, entry)).collect();
    last.into_iter().map(|(client, entry)| (PyBytes::new(py, client), PyBytes::new(py, entry))).collect()
}

/// Bytes before the body of an entry: kind, client, length.
const ENTRY_HEAD: usize = 1 + ID + 4;

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
    let (mut recipients, mut items): (Vec<&Id>, Vec<&[u8]>) = (vec![], vec![]);
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
        items.push(bytes);
    }
    recipients.sort_unstable();
    recipients.dedup();
    let recipients = recipients.into_iter().map(|one| PyBytes::new(py, one)).collect();
    Some((PyBytes::new(py, sender?), counts, recipients, lay_entries(py, sender?, &items)?))
}

/// The entries of series, written once into the place where they stay.
fn lay_entries<'py>(py: Python<'py>, sender: &Id, items: &[&[u8]]) -> Option<Bound<'py, PyBytes>> {
    let size = items.iter().map(|item| ENTRY_HEAD + item.len()).sum();
    let lay = |entries: &mut [u8]| {
        let mut rest = entries;
        for item in items {
            let (entry, after) = rest.split_at_mut(ENTRY_HEAD + item.len());
            entry[0] = SERIES_ENTRY;
            entry[1..1 + ID].copy_from_slice(sender);
            entry[1 + ID..ENTRY_HEAD].copy_from_slice(&(item.len() as u32).to_be_bytes());
            entry[ENTRY_HEAD..].copy_from_slice(item);
            rest = after;
        }
        Ok(())
    };
    PyBytes::new_with(py, size, lay).ok()
}
