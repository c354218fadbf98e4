//! CRC-32 as zlib computes it, by carry-less multiplication where the machine has it.

use crc32fast::Hasher;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// Of `data`, going on from `start`, which is that of what came before.
#[pyfunction]
#[pyo3(signature = (data, start = 0))]
pub fn crc32(data: PyBuffer<u8>, start: u32) -> PyResult<u32> {
    if !data.is_c_contiguous() {
        return Err(PyBufferError::new_err("the bytes do not stand one after the other"));
    }
    // The buffer is held, and nothing else runs until we return.
    let bytes = unsafe { std::slice::from_raw_parts(data.buf_ptr().cast(), data.len_bytes()) };
    let mut hasher = Hasher::new_with_initial(start);
    hasher.update(bytes);
    Ok(hasher.finalize())
}
