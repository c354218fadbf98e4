//! Block headers of every fork; the definition is `proofcast/ethereum/header.py`. What it refuses is refused here without a
//! reason: `None`.

use crate::receipts::{check_end, take};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyTuple};

const FIELDS_MIN: usize = 15;

enum Kind {
    Bytes(usize),
    Text,
    /// Of 63 bits, which a signed column holds.
    Quantity,
    /// Of 256 bits.
    Word,
}

use Kind::{Bytes, Quantity, Text, Word};

const HASH: Kind = Bytes(32);

/// In the order of a header's fields.
#[rustfmt::skip]
const KINDS: [Kind; 21] = [
    HASH, HASH, Bytes(20), HASH, HASH, HASH, Bytes(256), Word, Quantity, Quantity, Quantity, Quantity, Text, HASH, Bytes(8),
    Word, HASH, Quantity, Quantity, HASH, HASH,
];

impl Kind {
    fn accepts(&self, field: &[u8]) -> bool {
        match self {
            Bytes(length) => field.len() == *length,
            Text => true,
            Quantity => is_integer(field) && (field.len() < 8 || field.len() == 8 && field[0] < 0x80),
            Word => is_integer(field) && field.len() <= 32,
        }
    }

    fn to_python<'py>(&self, py: Python<'py>, field: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Bytes(_) | Text => Ok(PyBytes::new(py, field).into_any()),
            Quantity | Word => py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, field), "big")),
        }
    }
}

fn is_integer(field: &[u8]) -> bool {
    field.first() != Some(&0)
}

/// The fields in the order of `Header`, None for those of later forks, and a tuple of what no fork has yet.
#[pyfunction]
pub fn parse_header<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Option<Bound<'py, PyTuple>>> {
    split_header(data).map(|fields| build_fields(py, &fields)).transpose()
}

fn split_header(data: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = data;
    let mut items = take(&mut rest, true)?;
    check_end(rest)?;
    let mut fields = Vec::with_capacity(KINDS.len());
    while !items.is_empty() {
        fields.push(take(&mut items, false)?);
    }
    let fits = KINDS.iter().zip(&fields).all(|(kind, field)| kind.accepts(field));
    (fields.len() >= FIELDS_MIN && fits).then_some(fields)
}

fn build_fields<'py>(py: Python<'py>, fields: &[&[u8]]) -> PyResult<Bound<'py, PyTuple>> {
    let mut values = Vec::with_capacity(KINDS.len() + 1);
    for (at, kind) in KINDS.iter().enumerate() {
        values.push(fields.get(at).map_or_else(|| Ok(py.None().into_bound(py)), |field| kind.to_python(py, field))?);
    }
    let further = fields.iter().skip(KINDS.len()).map(|field| PyBytes::new(py, field));
    values.push(PyTuple::new(py, further.collect::<Vec<_>>())?.into_any());
    PyTuple::new(py, values)
}
