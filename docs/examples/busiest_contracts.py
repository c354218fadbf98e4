# %% [markdown]
# Which contracts logged most, and how much gas the blocks used: read from a chain, verified while it is read.
#
#     python docs/examples/busiest_contracts.py SOURCE FIRST LAST plot.svg
#
# SOURCE is a node's address or a folder of recorded blocks. The cells run one by one in a notebook too.

# %%
import sys

from matplotlib.figure import Figure
from pyspark.sql import functions as sql

from proofcast.pipeline.io.session import build_session

source, first, last, target = sys.argv[1:]
spark = build_session("local[*]")
chain = spark.read.format("evm").options(source=source, first=first, last=last)

# %% Every log, recomputed from receipts whose root is the header's.
busiest = (
    chain.option("table", "logs")
    .option("columns", "number,address")
    .load()
    .groupBy(sql.concat(sql.lit("0x"), sql.lower(sql.hex("address"))).alias("contract"))
    .count()
    .orderBy(sql.desc("count"), "contract")
    .limit(10)
    .collect()
)

# %% The blocks themselves.
blocks = chain.option("table", "blocks").option("columns", "number,time,gas_used,gas_limit,log_count").load()
blocks.orderBy("number").show(5)
used = blocks.orderBy("number").select("number", "gas_used", "gas_limit").collect()

# %% A plot of both.
figure = Figure(figsize=(10, 4))
left, right = figure.subplots(1, 2)
left.barh([f"{row['contract'][:10]}.." for row in busiest][::-1], [row["count"] for row in busiest][::-1])
left.set(xlabel="logs")
right.plot([row["number"] for row in used], [row["gas_used"] / row["gas_limit"] for row in used], "o-")
right.set(xlabel="block", ylabel="gas used / limit", ylim=(0, 1))
right.ticklabel_format(useOffset=False)
figure.tight_layout()
figure.savefig(target)
print(f"{len(used)} blocks read; {target} written")
spark.stop()
