//! The group server's hot path behind `proofcast.groups.kernel`, from bytes to bytes.
//!
//! A batch of series becomes entries of a frame; a frame becomes rows, leaves, and a tree over them; a frame and what is
//! signed about it become packets.

mod batch;
mod hashing;
mod leaves;
mod packets;
mod rows;
mod tree;
mod wire;

pub use batch::{check_batch, list_last_series, list_requests};
pub use leaves::make_leaves;
pub use packets::make_packets;
pub use tree::hang_leaves;
