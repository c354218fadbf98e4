"""Delivery without a broker: content predicates routed from peer to peer. Start reading at `peer.py`."""
