// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Automata} from "./Automata.sol";

/// @notice One part of a routing key, ready to be compared with many binding keys.
struct Pattern {
    bool isFanout;
    bool isDirect;
    /// Where the masks of the characters stand: bit `i` of a mask says that element `i` of the key reads the character.
    uint256 masks;
    /// Elements that read any character.
    uint256 wild;
    /// States that any character leaves as they are: those after a `*`.
    uint256 repeating;
    /// Elements that may read nothing.
    uint256 skippable;
    /// The states before the first character.
    uint256 start;
    /// The number of elements: the state in which a key may end.
    uint256 end;
    bytes automaton;
}

/// @notice Binding keys and routing keys.
/// @dev A pattern follows all readings of a key at once, bit `i` of a state for "the first `i` elements have been read", so that comparing
/// takes time in proportion to the binding key and no key can make it slow.
library Keys {
    uint256 internal constant LENGTH_MAX = 128;
    uint256 internal constant PARTS_MAX = 8;

    /// @dev Bit `c` for every character that may stand in a binding key.
    uint256 private constant BINDING = 1 << 45 | 0x3ff << 48 | 0x3ffffff << 65 | 0x3ffffff << 97;
    uint256 private constant WILD = 1 << 42 | 1 << 35;
    uint256 private constant DOT = 46;
    uint256 private constant STAR = 42;
    uint256 private constant HASH = 35;

    /// @notice The first place of a binding key that must not be so; its length if it is well formed.
    function findFlaw(bytes calldata key) internal pure returns (uint256 place) {
        unchecked {
            uint256 length = key.length < LENGTH_MAX ? key.length : LENGTH_MAX;
            while (place < length && BINDING >> uint8(key[place]) & 1 != 0) ++place;
        }
    }

    function isBindingKey(bytes calldata key) internal pure returns (bool) {
        return key.length != 0 && findFlaw(key) == key.length;
    }

    /// @notice The length of the first part of a routing key, all of which is checked.
    /// @return first 0 if the key is not well formed
    /// @return flaw where it is not
    function split(bytes calldata key) internal pure returns (uint256 first, uint256 flaw) {
        unchecked {
            uint256 place;
            for (uint256 parts; parts < PARTS_MAX; ++parts) {
                uint256 length = _partLength(key[place:]);
                if (length == 0) return (0, place);
                if (parts == 0) first = length;
                place += length;
                if (place == key.length) return (first, 0);
                if (uint8(key[place]) != DOT) return (0, place);
                ++place;
            }
            return (0, place);
        }
    }

    /// @notice Prepares a part for comparisons.
    function parse(bytes calldata part, bool hashMayBeNothing) internal pure returns (Pattern memory pattern) {
        unchecked {
            if (uint8(part[0]) == Automata.VERSION) {
                pattern.automaton = part;
                return pattern;
            }
            uint256 masks;
            assembly ("memory-safe") {
                masks := mload(0x40)
                mstore(0x40, add(masks, 4096))
                calldatacopy(masks, calldatasize(), 4096) // zeros
            }
            for (uint256 i; i < part.length; ++i) {
                uint256 c = uint8(part[i]);
                uint256 bit = 1 << i;
                if (WILD >> c & 1 == 0) {
                    assembly ("memory-safe") {
                        let at := add(masks, shl(5, c))
                        mstore(at, or(mload(at), bit))
                    }
                    continue;
                }
                pattern.wild |= bit;
                if (c == STAR) pattern.repeating |= bit << 1;
                else if (hashMayBeNothing) pattern.skippable |= bit;
            }
            pattern.masks = masks;
            pattern.start = _skip(1, pattern.skippable);
            pattern.end = part.length;
            pattern.isFanout = part.length == 1 && uint8(part[0]) == STAR;
            pattern.isDirect = pattern.wild == 0;
        }
    }

    /// @notice Whether the pattern means a binding key, given as a place in memory.
    function means(Pattern memory pattern, uint256 key, uint256 length) internal pure returns (bool) {
        unchecked {
            if (pattern.automaton.length != 0) return Automata.accepts(pattern.automaton, key, length);
            (uint256 masks, uint256 wild, uint256 repeating, uint256 skippable) =
                (pattern.masks, pattern.wild, pattern.repeating, pattern.skippable);
            uint256 states = pattern.start;
            for (uint256 end = key + length; key < end && states != 0; ++key) {
                uint256 c;
                uint256 readers;
                assembly ("memory-safe") {
                    c := byte(0, mload(key))
                    readers := or(mload(add(masks, shl(5, c))), wild)
                }
                states = (states & readers) << 1 | states & repeating;
                if (skippable != 0) states = _skip(states, skippable);
            }
            return states >> pattern.end & 1 != 0;
        }
    }

    function _skip(uint256 states, uint256 skippable) private pure returns (uint256) {
        unchecked {
            for (uint256 more = states;; states = more) {
                more = states | (states & skippable) << 1;
                if (more == states) return states;
            }
            return states;
        }
    }

    /// @dev Of the part that `key` begins with; 0 if there is none.
    function _partLength(bytes calldata key) private pure returns (uint256 length) {
        unchecked {
            if (key.length == 0) return 0;
            if (uint8(key[0]) == Automata.VERSION) return Automata.lengthOf(key);
            uint256 most = key.length < LENGTH_MAX ? key.length : LENGTH_MAX;
            while (length < most && (BINDING | WILD) >> uint8(key[length]) & 1 != 0) ++length;
        }
    }
}
