"""What a chain of the newest fork makes today, types that no recorded block has among it."""

import pytest
from eth_account import Account

from proofcast.chain.io.rpc import RpcClient
from proofcast.chain.io.rpc_source import RpcSource
from proofcast.ethereum import columns, kernel
from proofcast.ethereum.header import compute_hash, parse_header
from proofcast.ethereum.receipt import parse_receipt
from proofcast.onchain.io.devchain import DevChain, run_dev_chain

GAS = {"gas": 200_000, "value": 1}
FEES = {"maxFeePerGas": 10**10, "maxPriorityFeePerGas": 1}


def send(chain: DevChain, rpc: RpcClient, nonce: int, fields: dict[str, object]) -> None:
    account = Account.from_key(chain.accounts[0].private_key)
    common = {"chainId": chain.chain_id, "nonce": nonce, "to": account.address}
    signed = account.sign_transaction(common | GAS | fields)
    rpc.call("eth_sendRawTransaction", f"0x{signed.raw_transaction.hex()}")


def authorize(chain: DevChain) -> object:
    """Permission of the second account to carry code: what a transaction of type 4 is for."""
    owner = Account.from_key(chain.accounts[1].private_key)
    return owner.sign_authorization({"chainId": chain.chain_id, "address": b"c" * 20, "nonce": 0})


@pytest.mark.needs("anvil")
@pytest.mark.slow
def test_set_code_receipt_of_a_running_chain() -> None:
    with run_dev_chain() as chain, RpcClient(chain.url) as rpc:
        rpc.call("evm_setAutomine", False)
        send(chain, rpc, 0, {"gasPrice": 10**10})
        send(chain, rpc, 1, {"gasPrice": 10**10, "accessList": []})
        send(chain, rpc, 2, FEES)
        send(chain, rpc, 3, FEES | {"authorizationList": [authorize(chain)]})
        rpc.call("evm_mine")
        (block,) = RpcSource(chain.url).get_blocks(1, 1)
        named = rpc.call("eth_getBlockByNumber", "0x1", False)
    header = parse_header(block.header)
    assert block.receipts is not None
    assert f"0x{compute_hash(block.header).hex()}" == named["hash"]
    assert [parse_receipt(raw).type for raw in block.receipts] == [0, 1, 2, 4]
    found = kernel.check_receipts(block.receipts, header.receipts_root, header.logs_bloom)
    assert found == columns.check_receipts(block.receipts, header.receipts_root, header.logs_bloom)
