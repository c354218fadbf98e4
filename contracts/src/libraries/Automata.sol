// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Runs a regular expression that was compiled off the chain: one table look-up per character of the key.
/// @dev The bytes: version 1 | number of classes c | number of states n | class of each of the 63 characters `-`, `0-9`, `A-Z`, `a-z` |
/// (n + 7) / 8 bytes of flags, lowest bit first: whether a key may end in a state | n rows of c next states. State 0 refuses; reading
/// begins in state 1.
library Automata {
    /// @dev The first byte of an automaton, which no key begins with.
    uint256 internal constant VERSION = 1;
    uint256 internal constant LENGTH_MAX = 4_096;
    uint256 private constant HEAD = 66;

    /// @notice The length of the automaton that `data` begins with; 0 if it does not begin with one.
    function lengthOf(bytes calldata data) internal pure returns (uint256 length) {
        unchecked {
            if (data.length <= HEAD || uint8(data[0]) != VERSION) return 0;
            uint256 states = uint8(data[2]);
            length = HEAD + (states + 7) / 8 + states * uint8(data[1]);
            if (states < 2 || data[1] == 0 || length > data.length || length > LENGTH_MAX) return 0;
        }
    }

    /// @notice Whether the automaton accepts a key of binding characters. One that leads outside of itself accepts nothing.
    function accepts(bytes memory automaton, uint256 key, uint256 length) internal pure returns (bool accepted) {
        assembly ("memory-safe") {
            let at := add(automaton, 32)
            let classes := byte(1, mload(at))
            let states := byte(2, mload(at))
            let flags := add(at, HEAD)
            let rows := add(flags, shr(3, add(states, 7)))
            let state := 1
            for { let end := add(key, length) } lt(key, end) { key := add(key, 1) } {
                let c := byte(0, mload(key))
                // The place of a character among the 63: `-` is 0, then digits, capitals, small letters.
                let place := 0
                if gt(c, 45) { place := sub(c, 47) }
                if gt(c, 57) { place := sub(c, 54) }
                if gt(c, 90) { place := sub(c, 60) }
                let class := byte(0, mload(add(at, add(3, place))))
                state := byte(0, mload(add(rows, add(mul(state, classes), class))))
                if or(iszero(lt(class, classes)), iszero(lt(state, states))) { state := 0 }
                if iszero(state) { break }
            }
            accepted := and(shr(and(state, 7), byte(0, mload(add(flags, shr(3, state))))), 1)
            if iszero(state) { accepted := 0 }
        }
    }
}
