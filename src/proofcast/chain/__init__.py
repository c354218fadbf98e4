"""What we believe about a chain; its I/O is in `chain/io`."""
