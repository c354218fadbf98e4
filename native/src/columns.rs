//! Buffers in Arrow's layout, handed to Python as bytes; what they hold is said in `proofcast/ethereum/columns.py`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// A bitmap, lowest bit first, that is only handed out where something is null.
#[derive(Default)]
struct Validity {
    bits: Vec<u8>,
    count: usize,
    has_null: bool,
}

impl Validity {
    fn push(&mut self, is_valid: bool) {
        if self.count.is_multiple_of(8) {
            self.bits.push(0);
        }
        self.bits[self.count / 8] |= (is_valid as u8) << (self.count % 8);
        self.has_null |= !is_valid;
        self.count += 1;
    }

    fn to_python<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.has_null.then(|| PyBytes::new(py, &self.bits))
    }
}

#[derive(Default)]
pub struct Integers {
    validity: Validity,
    values: Vec<u8>,
}

impl Integers {
    pub fn push(&mut self, value: Option<i64>) {
        self.validity.push(value.is_some());
        self.values.extend_from_slice(&value.unwrap_or(0).to_le_bytes());
    }

    pub fn len(&self) -> usize {
        self.validity.count
    }

    pub fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.validity.to_python(py), PyBytes::new(py, &self.values)).into_pyobject(py)
    }
}

pub struct Strings {
    validity: Validity,
    offsets: Vec<u8>,
    values: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings { validity: Validity::default(), offsets: vec![0; size_of::<i32>()], values: vec![] }
    }
}

impl Strings {
    /// Room for values of this many bytes in all.
    pub fn reserve(&mut self, bytes: usize) {
        self.values.reserve(bytes);
    }

    /// The caller sees to it that all values together are no longer than an offset reaches.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.validity.push(value.is_some());
        self.values.extend_from_slice(value.unwrap_or(&[]));
        self.offsets.extend_from_slice(&(self.values.len() as i32).to_le_bytes());
    }

    pub fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (offsets, values) = (PyBytes::new(py, &self.offsets), PyBytes::new(py, &self.values));
        (self.validity.to_python(py), offsets, values).into_pyobject(py)
    }
}
