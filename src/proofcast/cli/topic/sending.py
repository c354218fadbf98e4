"""What every command that sends shares: its receipt, and the fate of an event's deliveries."""

from proofcast.cli.output import format_record, format_table
from proofcast.cli.values import format_ether
from proofcast.onchain.abi import format_value
from proofcast.onchain.events import Delivered, Published
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.outcome import Outcome

WEI_PER_GWEI = 10**9


def describe_receipt(receipt: Receipt) -> dict[str, object]:
    return {
        "transaction": receipt.transaction_hash,
        "block": receipt.block_number,
        "gas_used": receipt.gas_used,
        "fee_wei": receipt.fee_wei,
    }


def describe_delivery(receipt: Receipt, contract: bytes) -> dict[str, object]:
    """What one page of deliveries did and cost."""
    page = receipt.get_event(contract, Delivered)
    published = next(receipt.find_events(contract, Published), None)
    return {
        "topic": page.topic,
        "sequence": page.sequence,
        "key": published.key if published else None,
        "outcomes": {index: outcome for index, outcome in page.by_index().items() if outcome is not Outcome.NONE},
        "remaining": page.remaining,
        "credited_gwei": page.credited_gwei,
        **describe_receipt(receipt),
    }


def format_delivery(receipt: Receipt, contract: bytes) -> str:
    page = receipt.get_event(contract, Delivered)
    fee_gwei = receipt.fee_wei / WEI_PER_GWEI
    record = {
        "event": str(page.sequence),
        "transaction": format_value(receipt.transaction_hash),
        "fee": format_ether(round(fee_gwei)),
        "credited": format_ether(page.credited_gwei),
    }
    if page.remaining:
        record["remaining"] = f"{page.remaining} positions, for `proofcast topic deliver`"
    outcomes = {index: outcome for index, outcome in page.by_index().items() if outcome is not Outcome.NONE}
    rows = [("index", "outcome"), *((str(index), outcome.words) for index, outcome in sorted(outcomes.items()))]
    return format_record(record) + ("\n\n" + format_table(rows) if outcomes else "")
