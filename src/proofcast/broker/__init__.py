"""Verified events to subscribers: every one once per cursor, undone when the chain undoes it."""
