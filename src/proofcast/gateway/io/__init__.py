"""The two directions as processes: a broker's events into the overlay, a peer's events onto a topic."""
