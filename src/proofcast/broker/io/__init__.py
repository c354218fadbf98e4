"""The broker's outside: the feed it reads and the doors it opens."""
