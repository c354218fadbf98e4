"""Feeds for tests."""
