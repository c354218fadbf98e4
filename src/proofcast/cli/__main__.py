"""`python -m proofcast.cli`, the same as the installed script."""

from proofcast.cli import run

run()
