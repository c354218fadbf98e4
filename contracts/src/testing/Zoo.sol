// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ISubscriber} from "../interfaces/ISubscriber.sol";
import {ITopics} from "../interfaces/ITopics.sol";
import {Terms, TermsLibrary} from "../types/Terms.sol";

// The zoo: subscribers that are hostile, clumsy or as plain as can be, to try a topic with. Each does one thing when it is
// called. Anybody may drive them, so they belong in tests and demonstrations and never hold money that matters.

/// @notice What every animal can do besides being called: subscribe itself, and do as it is told.
abstract contract Animal is ISubscriber {
    receive() external payable virtual {}

    /// @notice Subscribes this animal; the value sent is its deposit.
    function join(ITopics topics, bytes32 topic, Terms terms, uint256 hole) external payable returns (uint256 index) {
        return topics.subscribe{value: msg.value}(topic, terms, hole);
    }

    /// @notice Calls anything as this animal and hands on the answer, or the revert.
    function execute(address target, uint256 value, bytes calldata data) external payable returns (bytes memory) {
        (bool success, bytes memory returned) = target.call{value: value}(data);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(returned, 32), mload(returned))
            }
        }
        return returned;
    }
}

/* PLAIN */

/// @notice The cheapest subscriber there is: what a delivery costs beside it is the topic's own.
contract Noop is Animal {
    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata) external returns (bytes4 acknowledgement) {}
}

/// @notice Remembers how often it was called and with what, last.
contract Counter is Animal {
    uint64 public count;
    uint64 public sequence;
    uint128 public index;
    bytes32 public topic;
    bytes32 public key;
    bytes32 public payloadHash;

    function onEvent(bytes32 topic_, uint256 sequence_, uint256 index_, bytes32 key_, bytes calldata payload)
        external
        returns (bytes4 acknowledgement)
    {
        (count, sequence, index) = (count + 1, uint64(sequence_), uint128(index_));
        (topic, key, payloadHash) = (topic_, key_, keccak256(payload));
    }
}

/// @notice Sets a flag in a slot that is not empty: the paper's hybrid subscriber on its cheapest day.
contract FlagSetter is Animal {
    uint248 private _occupied = 1;
    bool public raised;

    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata) external returns (bytes4 acknowledgement) {
        raised = true;
    }
}

/// @notice The paper's sample subscriber: checks who calls and stores what it is sent; 64 characters are three fresh slots.
contract Store64 is Animal {
    ITopics public immutable topics;
    bytes public payload;

    /// @dev No index to reuse.
    uint256 private constant END = 0xffffff;

    error NotTopics(address have, address need);

    constructor(ITopics topics_) {
        topics = topics_;
    }

    /// @notice Subscribes on the sample's usual terms.
    function subscribe(bytes32 topic) external payable {
        topics.subscribe{value: msg.value}(topic, TermsLibrary.pack(200_000, 1_000_000, 1_000_000_000), END);
    }

    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata payload_)
        external
        returns (bytes4 acknowledgement)
    {
        require(msg.sender == address(topics), NotTopics(msg.sender, address(topics)));
        payload = payload_;
    }
}

/// @notice Remembers the gas it had on entry, less the few hundred its dispatch takes.
contract GasEcho is Animal {
    uint256 public gasAtEntry;

    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata) external returns (bytes4 acknowledgement) {
        gasAtEntry = gasleft();
    }
}

/* HOSTILE */

/// @notice Burns all the gas it gets.
contract Burner is Animal {
    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata)
        external
        pure
        returns (bytes4 acknowledgement)
    {
        assembly {
            invalid()
        }
    }
}

/// @notice Reverts with 280 kB: whoever copies them pays more than it was paid for.
contract RevertBomb is Animal {
    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata)
        external
        pure
        returns (bytes4 acknowledgement)
    {
        assembly {
            revert(0, 280000)
        }
    }
}

/// @notice Returns 280 kB where nothing is expected.
contract ReturnBomb is Animal {
    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata)
        external
        pure
        returns (bytes4 acknowledgement)
    {
        assembly {
            return(0, 280000)
        }
    }
}

/// @notice Returns one byte, which decodes as nothing.
contract WrongReturn is Animal {
    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata)
        external
        pure
        returns (bytes4 acknowledgement)
    {
        assembly {
            mstore8(0, 255)
            return(0, 1)
        }
    }
}

/// @notice Makes, while it is called, the call it was given before, and remembers how that went.
contract Reenterer is Animal {
    address public target;
    uint64 public count;
    bool public success;
    uint256 public value;
    bytes public data;
    bytes public returned;

    function prepare(address target_, uint256 value_, bytes calldata data_) external payable {
        (target, value, data) = (target_, value_, data_);
    }

    /// @dev Counted first, so that a nested delivery to this animal itself is counted too.
    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata) external returns (bytes4 acknowledgement) {
        count++;
        (success, returned) = target.call{value: value}(data);
    }
}

/// @notice Ends its own subscription while it is called.
contract Unsubscriber is Animal {
    function onEvent(bytes32 topic, uint256, uint256 index, bytes32, bytes calldata)
        external
        returns (bytes4 acknowledgement)
    {
        ITopics(msg.sender).unsubscribe(topic, index, address(this));
    }
}

/// @notice Destroys itself while it is called: from Cancun on it only gives its ether away, before that its code goes too.
contract Selfdestructor is Animal {
    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata) external returns (bytes4 acknowledgement) {
        selfdestruct(payable(msg.sender));
    }
}
