"""The data source `evm`: what Spark reads is what plain functions make of the same blocks."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from proofcast.chain.io.recorded import read_block, write_blocks
from proofcast.cli.doctor import find_data
from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError, Unavailable
from proofcast.ethereum.block import encode_recorded
from proofcast.ethereum.header import parse_header
from proofcast.ethereum.receipt import parse_receipt
from proofcast.pipeline.io.failures import spoken
from proofcast.pipeline.schemas import TOPICS
from proofcast.testing.chain import ChainSimulator

pytestmark = [pytest.mark.needs("java"), pytest.mark.slow]
CHAIN_ID = 31_337
SEED = 5


@pytest.fixture(scope="module")
def chain() -> ChainSimulator:
    simulator = ChainSimulator(SEED)
    simulator.mine(12)
    return simulator


@pytest.fixture(scope="module")
def recorded(chain: ChainSimulator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Blocks 3 to 12: reading any other number fails."""
    folder = tmp_path_factory.mktemp("recorded")
    write_blocks(folder, CHAIN_ID, [block.raw for block in chain.canonical[3:]])
    return folder


def read(spark: SparkSession, source: Path | str, **options: str) -> DataFrame:
    return spark.read.format("evm").options(source=str(source), blocks_per_partition="4", **options).load()


def refuse(frame: DataFrame) -> ProofcastError:
    with pytest.raises(ProofcastError) as refusal, spoken():
        frame.count()
    return refusal.value


# --- refusals


def test_false_receipt_is_refused_where_it_is_read(spark: SparkSession, chain: ChainSimulator, tmp_path: Path) -> None:
    blocks = [block.raw for block in chain.canonical[3:6]]
    receipts = blocks[1].receipts or ()
    blocks[1] = replace(blocks[1], receipts=(receipts[0][:-1] + bytes([receipts[0][-1] ^ 1]), *receipts[1:]))
    write_blocks(tmp_path, CHAIN_ID, blocks)
    refusal = refuse(read(spark, tmp_path, first="3", last="5"))
    assert isinstance(refusal, InvalidInput)
    assert "block `4`" in str(refusal)


def test_corrupt_file_is_named(spark: SparkSession, chain: ChainSimulator, tmp_path: Path) -> None:
    (path,) = write_blocks(tmp_path, CHAIN_ID, [chain.canonical[3].raw])
    path.write_bytes(gzip.compress(encode_recorded(chain.canonical[3].raw)[:-9]))
    refusal = refuse(read(spark, tmp_path, first="3", last="3"))
    assert isinstance(refusal, InvalidInput)
    assert path.name in str(refusal)


def test_absent_node_and_wrong_chain(spark: SparkSession, recorded: Path) -> None:
    assert isinstance(refuse(read(spark, "http://127.0.0.1:9", first="1")), Unavailable)
    wrong = refuse(read(spark, recorded, first="3", chain_id="1"))
    assert isinstance(wrong, InvalidRequest)
    assert f"`{CHAIN_ID}`, not `1`" in str(wrong)


# --- what is read


@pytest.mark.needs("data")
def test_spark_reads_what_plain_functions_read(spark: SparkSession) -> None:
    data = find_data()
    assert data
    paths = sorted(data.glob("blocks/mainnet-176861[12]?.rlp.gz"))
    expected = []
    for block in map(read_block, paths):
        number, index = parse_header(block.header).number, 0
        for transaction, raw in enumerate(block.receipts or ()):
            for log in parse_receipt(raw).logs:
                topics = (*log.topics, *[None] * (4 - len(log.topics)))
                expected.append((number, transaction, index, log.address, *topics, log.data))
                index += 1
    source = str(data / "blocks" / "mainnet-*.rlp.gz")
    columns = ["number", "transaction_index", "log_index", "address", *TOPICS, "data"]
    found = read(spark, source, first="17686110", last=str(17686110 + len(paths) - 1)).select(columns).collect()
    assert sorted(map(tuple, found)) == sorted(expected)
    assert len(found) > 8_000


def test_filters_narrow_what_is_fetched(spark: SparkSession, chain: ChainSimulator, recorded: Path) -> None:
    wanted = next(log for log in chain.canonical[5].logs if log.topics)
    numbers = range(4, 8)
    text = f"number > 3 AND number <= 7 AND topic0 = X'{wanted.topics[0].hex()}'"
    expected = [
        (number, at)
        for number in numbers
        for at, log in enumerate(chain.canonical[number].logs)
        if log.topics and log.topics[0] == wanted.topics[0]
    ]
    found = read(spark, recorded).filter(text).select("number", "log_index").collect()
    assert sorted(map(tuple, found)) == expected


def test_stream_goes_on_without_gap_or_repeat(
    spark: SparkSession, chain: ChainSimulator, recorded: Path, scratch: str
) -> None:
    batches: list[list[int]] = []

    def run(last: int) -> None:
        options = {"source": str(recorded), "table": "blocks", "first": "3", "last": str(last)}
        limits = {"blocks_per_batch": "4", "blocks_per_partition": "2"}
        blocks = spark.readStream.format("evm").options(**options, **limits).load().filter("step = 'apply'")

        def keep(batch: DataFrame, batch_id: int) -> None:
            batches.append(sorted(row.number for row in batch.select("number").collect()))

        writer = blocks.writeStream.foreachBatch(keep).option("checkpointLocation", scratch)
        writer.trigger(availableNow=True).start().awaitTermination()

    run(8)
    assert batches == [[3, 4, 5, 6], [7, 8]]
    run(12)
    assert batches == [[3, 4, 5, 6], [7, 8], [9, 10, 11, 12]]
    offsets = sorted(Path(scratch, "offsets").glob("[0-9]*"))
    last = json.loads(offsets[-1].read_text().splitlines()[-1])
    assert (last["number"], last["hash"]) == (12, chain.canonical[12].hash.hex())
