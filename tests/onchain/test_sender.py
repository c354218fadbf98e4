"""The sender on a real chain: refusals cost nothing, a key is used once, nonces stay in order."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from eth_account import Account
from web3 import Web3

from proofcast.chain.io.answers import parse_quantity
from proofcast.chain.io.rpc import RpcClient
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.onchain import lens, topics
from proofcast.onchain.events import Published, TopicCreated
from proofcast.onchain.io.artefacts import load_artefact
from proofcast.onchain.io.fees import FeePolicy
from proofcast.onchain.io.keys import parse_key
from proofcast.onchain.io.publishing import publish
from proofcast.onchain.io.reading import encode_hex, find_logs, read
from proofcast.onchain.io.sender import Sender, Stage
from proofcast.onchain.request import Request, ask
from proofcast.testing.onchain import Playground

pytestmark = pytest.mark.needs("anvil")

CREATE = topics.create("flights")
IMPATIENT = FeePolicy(replace_after_s=0.0, wait_s_max=60.0)
HASTY = FeePolicy(wait_s_max=0.0)


def count_transactions(playground: Playground, account: int = 0) -> int:
    address = encode_hex(playground.chain.accounts[account].address)
    return parse_quantity(playground.rpc.call("eth_getTransactionCount", address, "latest"))


def count_events(playground: Playground, topic: bytes) -> int:
    return read(playground.rpc, playground.lens, lens.get_topic(topic)).sequence


# --- refusals


def test_revert_is_explained_before_anything_is_sent(playground: Playground) -> None:
    sender = playground.open_sender()
    with pytest.raises(InvalidRequest, match="there is no topic") as raised:
        sender.send(ask(playground.topics, topics.seal(bytes(32))), "a")
    assert raised.value.reason is Reason.UNKNOWN_TOPIC
    assert count_transactions(playground) == 0


def test_no_funds_is_explained_with_both_amounts(playground: Playground) -> None:
    sender = playground.open_sender()
    playground.set_balance(sender.address, 1_000)
    with pytest.raises(InvalidRequest, match="has `1000` wei but this call needs up to") as raised:
        sender.send(ask(playground.topics, CREATE), "a")
    assert (raised.value.reason, raised.value.have) == (Reason.NO_FUNDS, 1_000)
    assert isinstance(raised.value.need, int)
    assert raised.value.need > 1_000


def test_value_beyond_the_balance_is_no_funds(playground: Playground) -> None:
    sender = playground.open_sender()
    with pytest.raises(InvalidRequest) as raised:
        sender.send(Request(playground.topics, b"", 10**30), "a")
    assert raised.value.reason is Reason.NO_FUNDS


def test_key_of_another_call_is_refused(playground: Playground) -> None:
    sender = playground.open_sender()
    sender.send(ask(playground.topics, CREATE), "a")
    with pytest.raises(InvalidRequest, match="the idempotency key `a` belongs to a different call"):
        sender.send(ask(playground.topics, topics.create("other")), "a")


def test_fee_beyond_the_most_is_refused_for_now(playground: Playground) -> None:
    sender = playground.open_sender(fees=FeePolicy(max_fee_wei=1))
    with pytest.raises(Unavailable, match="at most `1` wei may be paid"):
        sender.send(ask(playground.topics, CREATE), "a")


def test_stale_sequence_costs_nothing(playground: Playground) -> None:
    sender = playground.open_sender()
    topic = sender.send(ask(playground.topics, CREATE), "a").get_event(playground.topics, TopicCreated).topic
    with pytest.raises(InvalidRequest, match="the next event is number `1` but `5` was expected") as raised:
        publish(sender, playground.contracts, topic, b"x", idempotency_key="b", expected=5, payee=sender.address)
    assert (raised.value.reason, raised.value.have, raised.value.need) == (Reason.STALE_SEQUENCE, 5, 1)
    assert count_transactions(playground) == 1


def test_nonce_used_by_another_program_is_not_waited_for(playground: Playground) -> None:
    """Our transaction is dropped and another wallet, which keeps no journal, uses its nonce."""
    playground.rpc.call("evm_setAutomine", False)
    try:
        with pytest.raises(Unavailable, match="is not mined yet"):
            playground.open_sender(fees=HASTY).send(ask(playground.topics, CREATE), "a")
        playground.rpc.call("anvil_dropAllTransactions")
    finally:
        playground.rpc.call("evm_setAutomine", True)
    account = Account.from_key(playground.chain.accounts[0].private_key)
    transfer = account.sign_transaction(
        {"to": account.address, "value": 1, "gas": 21_000, "gasPrice": 10**10, "nonce": 0, "chainId": 31337}
    )
    playground.rpc.call("eth_sendRawTransaction", encode_hex(transfer.raw_transaction))
    with pytest.raises(InvalidRequest, match="another program used the nonce `0`"):
        playground.open_sender().send(ask(playground.topics, CREATE), "a")
    assert count_transactions(playground) == 1


# --- once


def test_same_key_gives_the_same_receipt(playground: Playground) -> None:
    first = playground.open_sender().send(ask(playground.topics, CREATE), "a")
    assert playground.open_sender().send(ask(playground.topics, CREATE), "a") == first
    assert count_transactions(playground) == 1


def test_receipt_agrees_with_web3(playground: Playground) -> None:
    receipt = playground.open_sender().send(ask(playground.topics, CREATE), "a")
    theirs = Web3(Web3.HTTPProvider(playground.chain.url)).eth.get_transaction_receipt(receipt.transaction_hash)  # type: ignore[arg-type]
    assert receipt.gas_used == theirs["gasUsed"]
    assert receipt.effective_gas_price == theirs["effectiveGasPrice"]
    assert receipt.block_hash == bytes(theirs["blockHash"])
    assert [log.data for log in receipt.logs] == [bytes(log["data"]) for log in theirs["logs"]]


def test_reorganised_transaction_is_sent_again(playground: Playground) -> None:
    first = playground.open_sender().send(ask(playground.topics, CREATE), "a")
    playground.rpc.call("anvil_rollback", 1)
    assert count_transactions(playground) == 0
    again = playground.open_sender().send(ask(playground.topics, CREATE), "a")
    assert again.transaction_hash == first.transaction_hash
    assert count_transactions(playground) == 1


def test_next_call_sends_what_a_reorganisation_dropped(playground: Playground) -> None:
    for name in ("a", "b"):
        playground.open_sender().send(ask(playground.topics, topics.create(name)), name)
    playground.rpc.call("anvil_rollback", 2)
    playground.open_sender().send(ask(playground.topics, topics.create("c")), "c")
    found = find_logs(playground.rpc, playground.topics, TopicCreated, first=0)
    assert [logged.event.name for logged in found if isinstance(logged.event, TopicCreated)] == ["a", "b", "c"]


def test_timeout_names_the_key_and_the_retry_finishes(playground: Playground) -> None:
    playground.rpc.call("evm_setAutomine", False)
    try:
        with pytest.raises(Unavailable, match="is not mined yet") as raised:
            playground.open_sender(fees=HASTY).send(ask(playground.topics, CREATE), "my key")
        assert "--idempotency-key my key" in raised.value.hint
        playground.rpc.call("evm_mine")
        receipt = playground.open_sender(fees=HASTY).send(ask(playground.topics, CREATE), "my key")
    finally:
        playground.rpc.call("evm_setAutomine", True)
    assert receipt.succeeded
    assert count_transactions(playground) == 1


def test_stuck_transaction_is_replaced_with_higher_fees(playground: Playground) -> None:
    """The chain mines only once the sender has offered more; the mined one is the replacement."""
    sent: list[bytes] = []

    def watch(stage: Stage, transaction_hash: bytes) -> None:
        sent.append(transaction_hash)
        if stage is Stage.REPLACED:
            playground.rpc.call("evm_mine")

    playground.rpc.call("evm_setAutomine", False)
    try:
        account = parse_key(playground.chain.accounts[0].private_key)
        sender = Sender(playground.rpc, account, playground.folder, fees=IMPATIENT, watch=watch)
        receipt = sender.send(ask(playground.topics, CREATE), "a")
    finally:
        playground.rpc.call("evm_setAutomine", True)
    assert receipt.transaction_hash == sent[-1] != sent[0]
    assert count_transactions(playground) == 1


def test_many_threads_share_one_key(playground: Playground) -> None:
    names = [f"topic {i}" for i in range(16)]

    def create(name: str) -> int:
        with RpcClient(playground.chain.url) as rpc:
            sender = Sender(rpc, parse_key(playground.chain.accounts[0].private_key), playground.folder)
            return sender.send(ask(playground.topics, topics.create(name)), name).block_number

    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(create, names))) == len(names)
    found = {logged.event.name for logged in find_logs(playground.rpc, playground.topics, TopicCreated, first=0)}  # type: ignore[union-attr]
    assert found == set(names)
    assert count_transactions(playground) == len(names)


def test_many_threads_with_one_idempotency_key_publish_once(playground: Playground) -> None:
    sender = playground.open_sender()
    topic = sender.send(ask(playground.topics, CREATE), "a").get_event(playground.topics, TopicCreated).topic
    together = threading.Barrier(6)

    def send() -> bytes:
        together.wait()
        receipt = publish(sender, playground.contracts, topic, b"once", idempotency_key="p", payee=sender.address)
        return receipt.transaction_hash

    with ThreadPoolExecutor(6) as pool:
        hashes = {future.result() for future in [pool.submit(send) for _ in range(6)]}
    assert len(hashes) == 1
    assert count_events(playground, topic) == 1


def test_publish_brings_enough_gas_for_a_hostile_subscriber(playground: Playground) -> None:
    sender = playground.open_sender()
    topic = sender.send(ask(playground.topics, CREATE), "a").get_event(playground.topics, TopicCreated).topic
    for name in ("Burner", "Counter", "ReturnBomb"):
        playground.join(playground.create(name), topic)
    receipt = publish(sender, playground.contracts, topic, b"x", idempotency_key="p", payee=sender.address)
    assert receipt.get_event(playground.topics, Published).payload == b"x"


def test_journal_holds_no_key(playground: Playground) -> None:
    playground.open_sender().send(ask(playground.topics, CREATE), "a")
    secret = bytes.fromhex(playground.chain.accounts[0].private_key.removeprefix("0x"))
    kept = b"".join(file.read_bytes() for file in playground.folder.iterdir())
    assert secret not in kept
    assert secret.hex().encode() not in kept
    assert all(file.stat().st_mode & 0o077 == 0 for file in playground.folder.glob("*.sqlite"))


def test_chains_with_the_same_id_do_not_share_nonces(playground: Playground, tmp_path: Path) -> None:
    """A development chain that is started again has the same chain id and starts its nonces anew."""
    playground.open_sender().send(ask(playground.topics, CREATE), "a")
    with sqlite3.connect(tmp_path / "sender.sqlite") as database:
        database.execute("UPDATE promise SET chain = ?", (b"an earlier chain",))
    playground.rpc.call("anvil_rollback", 1)
    assert playground.open_sender().send(ask(playground.topics, CREATE), "a").succeeded


def test_contract_is_created(playground: Playground) -> None:
    receipt = playground.open_sender().send(Request(None, load_artefact("Noop").creation_code), "a")
    assert receipt.contract_address is not None
    code = playground.rpc.call("eth_getCode", encode_hex(receipt.contract_address), "latest")
    assert code == encode_hex(load_artefact("Noop").runtime_code)
