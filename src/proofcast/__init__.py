"""Proofcast: publish once, deliver everywhere, prove everything."""

__version__ = "0.1.0"
