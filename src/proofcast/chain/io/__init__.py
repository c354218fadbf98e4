"""The chain's outside: JSON-RPC."""
