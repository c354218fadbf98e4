"""Our contracts as typed Python calls.

`topics.py` and `signed.py` say what can be called, `events.py` what the contracts log, `reverts.py` why they refuse;
all of it is pure. `io/` reads, sends and starts a development chain.
"""
