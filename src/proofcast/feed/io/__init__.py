"""The feed's outside: SQLite, and the loop that follows a chain."""
