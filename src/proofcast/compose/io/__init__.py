"""The processes themselves."""
