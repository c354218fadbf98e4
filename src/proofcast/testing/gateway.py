"""Envelopes of a simulated chain, as a true gateway makes them."""

from pathlib import Path

from proofcast.client.checking import Wanted
from proofcast.client.io.http import Client
from proofcast.gateway.envelope import Envelope, parse_envelope
from proofcast.gateway.io.carrying import Carriage, build_payload, subscribe
from proofcast.gateway.trail import Trail
from proofcast.testing.feed.publishing import TOPICS_ADDRESS


def read_envelopes(url: str, trust: bytes, topic: bytes = b"") -> list[Envelope]:
    """Of everything that a broker has, at the finality `latest`."""
    named = f"0x{topic.hex()}" if topic else ""
    carriage = Carriage(Path(), named, "news", Wanted(contract=TOPICS_ADDRESS, topic=topic), "oldest", "latest", trust)
    trail = Trail(trust)
    with Client(url, topics=f"0x{TOPICS_ADDRESS.hex()}") as client:
        subscription = subscribe(client, carriage, trail, "")
        payloads = [build_payload(client, carriage, trail, subscription) for _ in subscription.read_history()]
    return [parse_envelope(payload) for payload in payloads if payload]
