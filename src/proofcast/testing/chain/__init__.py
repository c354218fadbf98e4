"""Chains and nodes to test against: simulated, scripted and lying ones, over real HTTP."""

from proofcast.testing.chain.lying import Lie, LyingNode
from proofcast.testing.chain.node import SimulatedNode
from proofcast.testing.chain.scripted import ScriptedNode, error, get_id, plainly, result
from proofcast.testing.chain.server import Answer, JsonValue, encode
from proofcast.testing.chain.simulator import ChainSimulator, SimulatedBlock

__all__ = [
    "Answer",
    "ChainSimulator",
    "JsonValue",
    "Lie",
    "LyingNode",
    "ScriptedNode",
    "SimulatedBlock",
    "SimulatedNode",
    "encode",
    "error",
    "get_id",
    "plainly",
    "result",
]
