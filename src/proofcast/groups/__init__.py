"""Sealed, strictly ordered groups, and a server whose lies can be proved."""
