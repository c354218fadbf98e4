"""The groups server and client outside: logs, sockets, processes, the encrypted store."""
