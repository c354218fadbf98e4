"""A broker at a real socket, and publications to feed it."""
