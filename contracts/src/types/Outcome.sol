// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What became of one delivery; one byte each in the `Delivered` log.
enum Outcome {
    /// Nobody holds this index, or joined after the event.
    None,
    /// The callback returned.
    Delivered,
    /// The callback had its full gas and reverted.
    Failed,
    /// The deposit cannot pay this event at this price, or is below the topic's floor while no more can be removed; not called.
    Unfunded,
    /// The base fee, or reward and base share, exceed what the subscriber accepts; not called.
    PriceTooHigh,
    /// Called, but there is no code at the address.
    NoCode,
    /// Below the topic's deposit floor: removed before the call, the residue credited to it.
    Removed,
    /// Not reached in this transaction; served by a later page.
    Deferred
}
