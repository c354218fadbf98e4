"""The overlay on real machines: libp2p hosts, stored state, the local control socket."""
