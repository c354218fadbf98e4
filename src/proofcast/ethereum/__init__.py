"""What Ethereum says: facts anyone can recompute from bytes, whatever he believes about a chain."""
