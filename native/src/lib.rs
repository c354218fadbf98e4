//! Proofcast's compiled kernels. Each agrees with a definition in Python, which serves where this crate is not built.

mod blooms;
mod checksum;
mod columns;
mod groups;
mod headers;
mod keccak;
mod matching;
mod receipts;
mod trie;

use pyo3::prelude::*;

#[pymodule]
mod proofcast_native {
    #[pymodule_export]
    use crate::blooms::match_blooms;
    #[pymodule_export]
    use crate::checksum::crc32;
    #[pymodule_export]
    use crate::groups::{check_batch, hang_leaves, list_last_series, list_requests, make_leaves, make_packets};
    #[pymodule_export]
    use crate::headers::parse_header;
    #[pymodule_export]
    use crate::matching::MatchingIndex;
    #[pymodule_export]
    use crate::receipts::{check_receipts, compute_ordered_root, get_widths, keccak256};
}
