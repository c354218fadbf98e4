"""Deliveries into a topic of Kafka; acknowledged once every replica that Kafka asks for has them.

The producer is idempotent: what it repeats by itself after a lost answer is written once and in order. What this broker
repeats after a failure, or after its own death, may be written twice, and is marked as repeated then.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer

from proofcast.broker.io.deliveries import Deliveries
from proofcast.broker.io.metrics import Metrics
from proofcast.broker.io.store.letters import Attempt
from proofcast.broker.io.store.subscriptions import Holding
from proofcast.broker.kafka import Target, encode_record, parse_target, refuse
from proofcast.broker.measures import Outcome, Transport
from proofcast.broker.subscription import Pending, Subscription, Terms

Answer = TypeVar("Answer")

SERVERS = "bootstrap.servers"
ADVISED = {
    "linger.ms": "5",
    "delivery.timeout.ms": "30000",
    "topic.metadata.propagation.max.ms": "1000",  # a topic that is not there is said so; it is asked for again anyway
    "log_level": "0",
}
PROMISED = {"enable.idempotence": "true", "enable.gapless.guarantee": "true", "acks": "all"}
"""Whatever the operator writes: nothing is written behind something that could not be."""
RECORDS_MAX = 1_000
"""Handed to the producer at a time; the next ones follow when these are written."""
FLUSH_S_MAX = 60.0
"""Longer than the producer itself tries."""
PING_S_MAX = 5.0
PAUSE_S_MIN, PAUSE_S_MAX = 1.0, 60.0
"""After a failure; doubled each time, jittered."""
HOPELESS = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD})
"""Errors of a record itself: it would fail for ever and is buried, the others go on."""


class KafkaSink:
    """The carrier; which Kafka it is the operator says, `properties` are librdkafka's."""

    def __init__(self, deliveries: Deliveries, metrics: Metrics, properties: Mapping[str, str]) -> None:
        self._deliveries, self._metrics = deliveries, metrics
        self._properties = {**ADVISED, **properties, **PROMISED}

    def verify_terms(self, terms: Terms) -> None:
        parse_target(terms)
        if SERVERS not in self._properties:
            raise refuse("this broker writes to no Kafka", "its operator names one with `--kafka`")

    async def run(self, holding: Holding) -> None:
        """Batch after batch; after a failure what is left is read from the store again."""
        writer, pause_s = Writer(self._properties, parse_target(holding.subscription.terms)), PAUSE_S_MIN
        try:
            while True:
                pending = await self._deliveries.read(holding, RECORDS_MAX)
                if not pending:
                    await self._deliveries.wait(holding)
                elif await self._carry(holding, pending, await writer.write(pending)):
                    pause_s = PAUSE_S_MIN
                else:
                    await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
                    pause_s = min(2 * pause_s, PAUSE_S_MAX)
        finally:
            writer.close()

    async def ping(self, subscription: Subscription) -> str:
        """Whether Kafka has the topic; nothing is written into it."""
        writer = Writer(self._properties, parse_target(subscription.terms))
        try:
            return await writer.find_topic()
        finally:
            writer.close()

    async def _carry(self, holding: Holding, pending: Sequence[Pending], errors: Sequence[KafkaError | None]) -> bool:
        """Acknowledge what was written, up to the first failure; was there none, or only of records themselves?"""
        failed = next((at for at, error in enumerate(errors) if error is not None), len(pending))
        if failed:
            await self._deliveries.store.acknowledge(holding, [one.ordinal for one in pending[:failed]])
            self._metrics.count(Transport.KAFKA, Outcome.ACKNOWLEDGED, failed)
        error = errors[failed] if failed < len(pending) else None
        return error is None or await self._note_failure(holding, pending[failed], error)

    async def _note_failure(self, holding: Holding, pending: Pending, error: KafkaError) -> bool:
        """Bury what would fail for ever; may the others go on at once?"""
        store, is_hopeless = self._deliveries.store, error.code() in HOPELESS
        outcome, detail = Outcome.DEAD if is_hopeless else Outcome.FAILED, describe(error)
        self._metrics.count(Transport.KAFKA, outcome, 1)
        attempt = Attempt(pending.ordinal, pending.attempts, pending.event_id, str(outcome), detail, time.time())
        await store.record(holding.name, [attempt])
        if is_hopeless:
            await store.bury(holding, pending.ordinal, detail)
        return is_hopeless


class Writer:
    """One producer and its thread, of one subscription: it waits for nobody else's records."""

    def __init__(self, properties: Mapping[str, str], target: Target) -> None:
        self._properties, self._target = dict(properties), target
        self._thread = ThreadPoolExecutor(1, "kafka")
        self._producer: Producer | None = None

    def close(self) -> None:
        self._drop()
        self._thread.shutdown(wait=False)

    async def write(self, pending: Sequence[Pending]) -> list[KafkaError | None]:
        """In order, until all are settled; the error of each, None where it is written."""
        return await self._run(partial(self._write, pending))

    async def find_topic(self) -> str:
        return await self._run(self._find_topic)

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _write(self, pending: Sequence[Pending]) -> list[KafkaError | None]:
        producer, errors = self._open(), [find_timeout()] * len(pending)
        for at, one in enumerate(pending):
            record = encode_record(one, self._target.mode)
            settled = partial(note_error, errors, at)
            try:
                producer.produce(
                    self._target.topic, record.value, record.key, headers=dict(record.headers), on_delivery=settled
                )
            except KafkaException as error:
                errors[at] = error.args[0]
                break
        producer.flush(FLUSH_S_MAX)
        if any(errors):
            self._drop()  # with whatever is still under way in it: it is written again
        return errors

    def _find_topic(self) -> str:
        topic = self._target.topic
        try:
            found = self._open().list_topics(topic, PING_S_MAX).topics[topic]
        except KafkaException as error:
            return describe(error.args[0])
        return describe(found.error) if found.error else "taken"

    def _open(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(self._properties)
        return self._producer

    def _drop(self) -> None:
        if self._producer is not None:
            self._producer.purge()
        self._producer = None


def note_error(errors: list[KafkaError | None], at: int, error: KafkaError | None, _: object) -> None:
    errors[at] = error


def find_timeout() -> KafkaError | None:
    """What is said of a record as long as Kafka says nothing."""
    return KafkaError(KafkaError._TIMED_OUT)


def describe(error: KafkaError) -> str:
    return f"{error.name()}: {error.str()}"
