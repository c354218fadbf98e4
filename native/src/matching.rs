//! The matching index behind `proofcast.routing.kernel`: which subscriptions does each of these events match?
//!
//! A subscription is a set of tokens that the event must carry and of closed ranges that its values must lie in. The
//! definition it agrees with is `proofcast.routing.definition`.

mod batch;
mod boxes;
mod chunk;
mod cuts;
mod index;

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use batch::Rows;
use boxes::{Boxes, check_starts};
use index::Index;

/// A buffer of numbers that a caller hands over, copied.
struct Column<T>(Vec<T>);

impl<T: Element> FromPyObject<'_, '_> for Column<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        // An empty `array` has no memory of its own and so no alignment.
        if object.len()? == 0 {
            return Ok(Column(Vec::new()));
        }
        PyBuffer::<T>::get(&object)?.to_vec(object.py()).map(Column)
    }
}

/// Many subscriptions, matched and changed from any thread.
#[pyclass(frozen)]
pub struct MatchingIndex {
    index: RwLock<Index>,
}

#[pymethods]
impl MatchingIndex {
    #[new]
    fn new() -> Self {
        MatchingIndex { index: RwLock::new(Index::new()) }
    }

    fn __len__(&self) -> usize {
        self.index.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn memory_bytes(&self) -> usize {
        self.index.read().unwrap_or_else(PoisonError::into_inner).memory()
    }

    /// Add all of these subscriptions or, where an argument is wrong, none.
    #[allow(clippy::too_many_arguments)]
    fn add(
        &self,
        py: Python<'_>,
        ids: Column<u32>,
        token_starts: Column<u32>,
        tokens: Column<u32>,
        range_starts: Column<u32>,
        attributes: Column<u32>,
        lows: Column<f64>,
        highs: Column<f64>,
    ) -> PyResult<()> {
        let boxes = Boxes {
            ids: ids.0,
            token_starts: token_starts.0,
            tokens: tokens.0,
            range_starts: range_starts.0,
            attributes: attributes.0,
            lows: lows.0,
            highs: highs.0,
        };
        py.detach(|| {
            boxes.check().or_else(refuse)?;
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            let mut fresh = HashSet::with_capacity(boxes.len());
            if let Some(id) = boxes.ids.iter().find(|id| index.contains(**id) || !fresh.insert(**id)) {
                return refuse(&format!("subscription `{id}` is there already"));
            }
            drop(fresh);
            index.add(&boxes);
            Ok(())
        })
    }

    /// Remove all of these subscriptions or, where one is unknown, none.
    fn remove(&self, py: Python<'_>, ids: Column<u32>) -> PyResult<()> {
        py.detach(|| {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            let mut gone = HashSet::with_capacity(ids.0.len());
            if let Some(id) = ids.0.iter().find(|id| !index.contains(**id) || !gone.insert(**id)) {
                return refuse(&format!("subscription `{id}` is not there"));
            }
            ids.0.iter().for_each(|&id| index.remove(id));
            Ok(())
        })
    }

    /// For each event where its ids begin (one more at the end), and the ids, both as 32-bit integers.
    fn match_rows<'py>(
        &self,
        py: Python<'py>,
        attributes: Column<u32>,
        lows: Column<f64>,
        highs: Column<f64>,
        token_starts: Column<u32>,
        tokens: Column<u32>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let rows = Rows {
            attributes: &attributes.0,
            lows: &lows.0,
            highs: &highs.0,
            token_starts: &token_starts.0,
            tokens: &tokens.0,
        };
        let events = count_events(&rows)?;
        let (starts, ids) = py.detach(|| self.find(&rows, events))?;
        Ok((to_bytes(py, &starts)?, to_bytes(py, &ids)?))
    }
}

impl MatchingIndex {
    /// The lock is taken for a part of the events at a time, so that changes do not wait for a long call to end.
    fn find(&self, rows: &Rows, events: usize) -> PyResult<(Vec<u32>, Vec<u32>)> {
        let (mut starts, mut ids, mut found) = (vec![0], Vec::new(), Vec::new());
        while starts.len() <= events {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            let first = starts.len() - 1;
            let last = events.min(first + index.batch_size(first, ids.len()));
            found.resize_with(found.len().max(last - first), Vec::new);
            match_rows(&index, rows, first, last, &mut found);
            let expected: usize = found.iter().map(Vec::len).sum();
            ids.reserve(expected * (events - first).div_ceil(last - first));
            for list in &mut found[..last - first] {
                ids.append(list);
                starts.push(u32::try_from(ids.len()).or_else(|_| refuse("one call found more than 2^32 matches"))?);
            }
        }
        Ok((starts, ids))
    }
}

/// The same code twice: for every machine, and for those with AVX2.
fn match_rows(index: &Index, rows: &Rows, first: usize, last: usize, found: &mut [Vec<u32>]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
        // SAFETY: the two features were found on this machine just now.
        return unsafe { match_rows_avx2(index, rows, first, last, found) };
    }
    index.match_rows(rows, first, last, found);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1")]
fn match_rows_avx2(index: &Index, rows: &Rows, first: usize, last: usize, found: &mut [Vec<u32>]) {
    index.match_rows(rows, first, last, found);
}

fn to_bytes<'py>(py: Python<'py>, numbers: &[u32]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, size_of_val(numbers), |target| {
        for (place, number) in target.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}

fn refuse<T>(what: &str) -> PyResult<T> {
    Err(PyValueError::new_err(what.to_string()))
}

fn count_events(rows: &Rows) -> PyResult<usize> {
    check_starts(rows.token_starts, rows.tokens.len()).or_else(refuse)?;
    let events = rows.token_starts.len() - 1;
    if rows.lows.len() != events * rows.attributes.len() {
        return refuse("a value is missing or too many");
    }
    if !rows.highs.is_empty() && rows.highs.len() != rows.lows.len() {
        return refuse("an upper end is missing or too many");
    }
    Ok(events)
}
