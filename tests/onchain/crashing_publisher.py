"""Publishes once and dies at the named stage, as if the power had failed; run by `test_crash.py`.

Arguments: the node, the folder of the journal, the topic, the stage or `never`. The key is in the environment.
"""

import os
import sys
from pathlib import Path

from proofcast.chain.io.rpc import RpcClient
from proofcast.onchain.io.artefacts import get_contracts
from proofcast.onchain.io.fees import FeePolicy
from proofcast.onchain.io.keys import load_account
from proofcast.onchain.io.publishing import publish
from proofcast.onchain.io.sender import Sender, Stage

DIED = 3


def main() -> None:
    url, folder, topic, fatal = sys.argv[1:]

    def watch(stage: Stage, transaction_hash: bytes) -> None:
        if stage == fatal:
            os._exit(DIED)

    with RpcClient(url) as rpc:
        account = load_account(None, str, os.environ)
        sender = Sender(rpc, account, Path(folder), fees=FeePolicy(wait_s_max=30.0), watch=watch)
        receipt = publish(
            sender, get_contracts(), bytes.fromhex(topic), b"x", idempotency_key="the event", payee=sender.address
        )
    print(receipt.transaction_hash.hex())


main()
