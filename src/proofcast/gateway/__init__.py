"""Between a ledger's topics and the serverless overlay: events go both ways, and what proves them goes with them."""
