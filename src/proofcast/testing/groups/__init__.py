"""A whole system of groups in memory, seeded from end to end: a server that lies on command, clients that lie."""
