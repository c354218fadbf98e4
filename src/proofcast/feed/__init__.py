"""The hand-over: verified steps and the events found in them, in order, written by one."""
