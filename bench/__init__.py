"""Figures: each module fills one table by a real run, `python -m bench.NAME`."""
