"""The SDK's outside: HTTP."""
