"""A real Kafka of one node, started from the jars that tools/kafka-jars fetched."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from proofcast.errors import Reason, Unavailable

JARS = Path(__file__).parents[4] / ".setup" / "kafka"
START_S_MAX = 60.0
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
num.partitions=3
auto.create.topics.enable=false
"""


@contextmanager
def run_kafka() -> Iterator[str]:
    """Its address; it ends with the `with`."""
    with tempfile.TemporaryDirectory(prefix="proofcast-kafka-") as name:
        folder, (port, controller) = Path(name), find_ports(2)
        settings = folder / "server.properties"
        settings.write_text(PROPERTIES.format(port=port, controller=controller, folder=folder))
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        run_java(["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)], folder).wait()
        server = run_java(["kafka.Kafka", str(settings)], folder)
        try:
            wait_until_ready(f"127.0.0.1:{port}", server, folder)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def run_java(arguments: list[str], folder: Path) -> subprocess.Popen[bytes]:
    java = shutil.which("java")
    if java is None or not JARS.exists():
        raise Unavailable(Reason.TOOL_MISSING, "there is no Java, or no `.setup/kafka`", hint="run `tools/kafka-jars`")
    quiet = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=ERROR"]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [java, *quiet, "-cp", f"{JARS}{os.sep}*", *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )


def wait_until_ready(address: str, server: subprocess.Popen[bytes], folder: Path) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": "0"})
    try:
        admin.list_topics(timeout=START_S_MAX)
    except KafkaException as error:
        server.kill()
        raise Unavailable(
            Reason.NO_ANSWER, f"Kafka did not start: {(folder / 'log').read_text()[-500:]}", hint="look at its log"
        ) from error


def find_ports(count: int) -> list[int]:
    """Free ones; nobody else is likely to take them in the next moments."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
