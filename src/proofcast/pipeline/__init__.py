"""Blocks to events at scale: verified rows in tables, on Spark.

Read `schemas.py` first: what is in a table; then `jobs/`: each reads, transforms and writes.
"""
