"""What became of a transaction: a node's receipts and logs as typed records."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from proofcast.chain.io.answers import parse_bytes, parse_quantity, refuse_answer
from proofcast.chain.io.rpc import Json
from proofcast.errors import InvalidInput, Reason
from proofcast.event import Position
from proofcast.onchain.events import TopicsEvent, find_event

Wanted = TypeVar("Wanted", bound=TopicsEvent)


@dataclass(frozen=True, slots=True)
class Log:
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    transaction_hash: bytes
    position: Position


@dataclass(frozen=True, slots=True)
class Receipt:
    transaction_hash: bytes
    succeeded: bool
    block_number: int
    block_hash: bytes
    gas_used: int
    effective_gas_price: int
    contract_address: bytes | None
    logs: tuple[Log, ...]

    @property
    def fee_wei(self) -> int:
        return self.gas_used * self.effective_gas_price

    def find_events(self, contract: bytes, wanted: type[Wanted]) -> Iterator[Wanted]:
        """The events of one kind that the contract logged in this transaction."""
        for log in self.logs:
            event = find_event(log.topics, log.data) if log.address == contract else None
            if isinstance(event, wanted):
                yield event

    def get_event(self, contract: bytes, wanted: type[Wanted]) -> Wanted:
        """The first such event of a transaction that must have logged one."""
        event = next(self.find_events(contract, wanted), None)
        if event is None:
            raise InvalidInput(
                Reason.MALFORMED,
                f"the transaction `0x{self.transaction_hash.hex()}` logged no `{wanted.__name__}`",
                hint="check that the address is that of `Topics` and the node is on the right network",
            )
        return event


def parse_log(log: Json, chain_id: int) -> Log:
    try:
        return build_log(log, chain_id)
    except (KeyError, TypeError):
        raise refuse_answer("log", log) from None


def build_log(log: Json, chain_id: int) -> Log:
    return Log(
        address=parse_bytes(log["address"]),
        topics=tuple(map(parse_bytes, log["topics"])),
        data=parse_bytes(log["data"]),
        transaction_hash=parse_bytes(log["transactionHash"]),
        position=Position(
            chain_id=chain_id,
            block_number=parse_quantity(log["blockNumber"]),
            block_hash=parse_bytes(log["blockHash"]),
            transaction_index=parse_quantity(log["transactionIndex"]),
            log_index=parse_quantity(log["logIndex"]),
        ),
    )


def parse_receipt(receipt: Json, chain_id: int) -> Receipt:
    try:
        return build_receipt(receipt, chain_id)
    except (KeyError, TypeError, AttributeError):
        raise refuse_answer("receipt", receipt) from None


def build_receipt(receipt: Json, chain_id: int) -> Receipt:
    created = receipt.get("contractAddress")
    return Receipt(
        transaction_hash=parse_bytes(receipt["transactionHash"]),
        succeeded=parse_quantity(receipt["status"]) == 1,
        block_number=parse_quantity(receipt["blockNumber"]),
        block_hash=parse_bytes(receipt["blockHash"]),
        gas_used=parse_quantity(receipt["gasUsed"]),
        effective_gas_price=parse_quantity(receipt["effectiveGasPrice"]),
        contract_address=parse_bytes(created) if created else None,
        logs=tuple(parse_log(log, chain_id) for log in receipt["logs"]),
    )
