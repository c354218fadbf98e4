"""Spark sessions, the data source `evm`, tables."""
