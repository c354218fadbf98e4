//! The receipts of a block, checked and turned into columns; the definitions are `receipt.py` and `columns.py` of
//! `proofcast/ethereum`. What they refuse is refused here without a reason: `None`.

use crate::blooms::{BLOOM, Blooms};
use crate::columns::{Integers, Strings};
use crate::keccak::{Width, find_widths};
use crate::trie;
use alloy_rlp::Header;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};

const NEWEST_KNOWN_TYPE: u8 = 4;
const TYPE_END: u8 = 0x80;
const LIST: u8 = 0xc0;
const STATE_ROOT: usize = 32;
const ADDRESS: usize = 20;
const TOPIC: usize = 32;
const TOPICS_MAX: usize = 4;
/// Of lists within lists.
const DEPTH_MAX: usize = 64;
/// What an offset of 32 bits reaches.
const BYTES_MAX: usize = i32::MAX as usize;

/// The columns of receipts whose root is `root`; None where they are refused. `lanes` picks a width other than the widest.
#[pyfunction]
#[pyo3(signature = (receipts, root, bloom, lanes=None))]
pub fn check_receipts<'py>(
    py: Python<'py>,
    receipts: Vec<PyBackedBytes>,
    root: &[u8],
    bloom: Option<&[u8]>,
    lanes: Option<usize>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let width = find_width(lanes)?;
    let checked = py.detach(|| check(&receipts, root, bloom, &width));
    checked.map(|rows| rows.to_python(py)).transpose()
}

#[pyfunction]
#[pyo3(signature = (items, lanes=None))]
pub fn compute_ordered_root<'py>(
    py: Python<'py>,
    items: Vec<PyBackedBytes>,
    lanes: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let width = find_width(lanes)?;
    let root = py.detach(|| trie::compute_ordered_root(&items, &width));
    Ok(PyBytes::new(py, &root))
}

#[pyfunction]
pub fn keccak256<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &find_widths()[0].hash_all(&[data])[0])
}

/// How many lanes of keccak this machine can use, narrowest first.
#[pyfunction]
pub fn get_widths() -> Vec<usize> {
    find_widths().iter().map(|width| width.lanes).collect()
}

fn find_width(lanes: Option<usize>) -> PyResult<Width> {
    let known = find_widths();
    let found = known.iter().rfind(|width| lanes.is_none_or(|wanted| width.lanes == wanted));
    found.copied().ok_or_else(|| PyValueError::new_err(format!("this machine has no {} lanes", lanes.unwrap_or(0))))
}

fn check(receipts: &[PyBackedBytes], root: &[u8], bloom: Option<&[u8]>, width: &Width) -> Option<Rows> {
    let bytes: usize = receipts.iter().map(|raw| raw.len()).sum();
    if bytes > BYTES_MAX {
        return None;
    }
    let mut rows = Rows::default();
    rows.data.reserve(bytes / 2);
    let mut blooms = bloom.map(Blooms::new);
    for raw in receipts {
        rows.push_receipt(raw, &mut blooms)?;
    }
    let is_root = trie::compute_ordered_root(receipts, width) == root;
    (is_root && blooms.is_none_or(|blooms| blooms.agree(width))).then_some(rows)
}

/// One row per log, one per receipt.
#[derive(Default)]
struct Rows {
    transaction_index: Integers,
    log_index: Integers,
    address: Strings,
    topics: [Strings; TOPICS_MAX],
    data: Strings,
    kind: Integers,
    status: Integers,
    cumulative_gas: Integers,
    log_count: Integers,
}

impl Rows {
    fn push_receipt<'a>(&mut self, raw: &'a [u8], blooms: &mut Option<Blooms<'a>>) -> Option<()> {
        let (kind, mut rest) = split_type(raw)?;
        let mut fields = take(&mut rest, true)?;
        let status = take_status(&mut fields, kind)?;
        let gas = take_gas(&mut fields)?;
        let bloom: &[u8; BLOOM] = take(&mut fields, false)?.try_into().ok()?;
        let mut logs = take(&mut fields, true)?;
        check_end(rest)?;
        check_further(fields, kind)?;
        if let Some(blooms) = blooms {
            blooms.push_receipt(bloom);
        }
        let before = self.log_index.len();
        while !logs.is_empty() {
            self.push_log(take(&mut logs, true)?, blooms)?;
        }
        self.kind.push(Some(kind.into()));
        self.status.push(status);
        self.cumulative_gas.push(Some(gas));
        self.log_count.push(Some((self.log_index.len() - before) as i64));
        Some(())
    }

    fn push_log<'a>(&mut self, mut fields: &'a [u8], blooms: &mut Option<Blooms<'a>>) -> Option<()> {
        let address = take_exactly(&mut fields, ADDRESS)?;
        let mut topics = take(&mut fields, true)?;
        let data = take(&mut fields, false)?;
        check_end(fields)?;
        let mut found = [None; TOPICS_MAX];
        for topic in &mut found {
            if !topics.is_empty() {
                *topic = Some(take_exactly(&mut topics, TOPIC)?);
            }
        }
        check_end(topics)?;
        if let Some(blooms) = blooms {
            blooms.push_entry(address);
            found.into_iter().flatten().for_each(|topic| blooms.push_entry(topic));
        }
        self.transaction_index.push(Some(self.kind.len() as i64));
        self.log_index.push(Some(self.log_index.len() as i64));
        self.address.push(Some(address));
        self.topics.iter_mut().zip(found).for_each(|(column, topic)| column.push(topic));
        self.data.push(Some(data));
        Some(())
    }

    /// In the order of `LogColumns`.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let integers = [&self.transaction_index, &self.log_index].map(|column| column.to_python(py));
        let [topic0, topic1, topic2, topic3] = &self.topics;
        let strings = [&self.address, topic0, topic1, topic2, topic3, &self.data].map(|column| column.to_python(py));
        let receipts =
            [&self.kind, &self.status, &self.cumulative_gas, &self.log_count].map(|column| column.to_python(py));
        let mut fields = vec![self.log_index.len().into_pyobject(py)?.into_any()];
        for column in integers.into_iter().chain(strings) {
            fields.push(column?.into_any());
        }
        fields.push(self.kind.len().into_pyobject(py)?.into_any());
        for column in receipts {
            fields.push(column?.into_any());
        }
        PyTuple::new(py, fields)
    }
}

// --- reading

/// The payload of the next item, which must be a list or a string as asked for.
pub fn take<'a>(rest: &mut &'a [u8], is_list: bool) -> Option<&'a [u8]> {
    Header::decode_bytes(rest, is_list).ok()
}

fn take_exactly<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    take(rest, false).filter(|string| string.len() == length)
}

pub fn check_end(rest: &[u8]) -> Option<()> {
    rest.is_empty().then_some(())
}

fn split_type(raw: &[u8]) -> Option<(u8, &[u8])> {
    match raw.first()? {
        0 | TYPE_END..LIST => None,
        &kind @ 1..TYPE_END => Some((kind, &raw[1..])),
        LIST.. => Some((0, raw)),
    }
}

/// None inside where the receipt has a state root in its place.
fn take_status(fields: &mut &[u8], kind: u8) -> Option<Option<i64>> {
    match take(fields, false)? {
        [] => Some(Some(0)),
        [1] => Some(Some(1)),
        root if root.len() == STATE_ROOT && kind == 0 => Some(None),
        _ => None,
    }
}

fn take_gas(fields: &mut &[u8]) -> Option<i64> {
    let digits = take(fields, false)?;
    if digits.len() > size_of::<i64>() || digits.first() == Some(&0) {
        return None;
    }
    let gas = digits.iter().fold(0u64, |gas, &digit| gas << 8 | u64::from(digit));
    gas.try_into().ok()
}

/// Only a type not known yet may have further fields.
fn check_further(mut fields: &[u8], kind: u8) -> Option<()> {
    if kind <= NEWEST_KNOWN_TYPE {
        return check_end(fields);
    }
    check_items(&mut fields, 1)
}

fn check_items(items: &mut &[u8], depth: usize) -> Option<()> {
    while !items.is_empty() {
        let head = Header::decode(items).ok()?;
        let (mut payload, rest) = items.split_at(head.payload_length);
        *items = rest;
        if depth > DEPTH_MAX {
            return None;
        }
        if head.list {
            check_items(&mut payload, depth + 1)?;
        }
    }
    Some(())
}
