"""The Python SDK: `proofcast.client.io.http.Client` subscribes, follows reorgs and changes brokers without a gap."""
