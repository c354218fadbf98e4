"""The chain's outside: nodes, recorded blocks, archives; `fetch.py` makes verified blocks of what they give."""
