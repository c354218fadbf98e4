"""Logs of the feed made into what subscribers get: publications, messages of exchanges, raw logs of other contracts."""

from collections.abc import Sequence
from dataclasses import replace

from proofcast.broker.catalogue import Catalogue
from proofcast.broker.entry import Entry
from proofcast.broker.frames import get_template, is_published, is_telling
from proofcast.broker.io.arrivals import Arrivals
from proofcast.broker.selection import Selection
from proofcast.event import Finality
from proofcast.feed.io.history import History
from proofcast.feed.outbox import Row
from proofcast.feed.view import Move, View, Way
from proofcast.onchain.events import PayloadTypeChanged, Published, TopicCreated, compute_type_hash
from proofcast.onchain.exchange_events import ExchangeCreated, QueueCreated, compute_exchange_type_hash
from proofcast.onchain.published import WORD


class EntryMaker:
    def __init__(self, history: History, catalogue: Catalogue) -> None:
        self._history, self._catalogue = history, catalogue
        self._arrivals = Arrivals(history, catalogue)
        self._learnt_from: View | None = None
        """Where the feed began when names were read last."""

    def learn_names(self) -> None:
        """Read what was created before we came, again when the feed has been filled with something older."""
        oldest, catalogue = self._history.get_oldest(), self._catalogue
        if oldest == self._learnt_from:
            return
        for said in (TopicCreated, PayloadTypeChanged):
            for log in self._history.list_logs(catalogue.topics_address, compute_type_hash(said)):
                catalogue.read(log)
        for created in (ExchangeCreated, QueueCreated):
            for log in self._history.list_logs(catalogue.exchanges_address, compute_exchange_type_hash(created)):
                catalogue.read_exchange(log)
        self._learnt_from = oldest

    def build(self, way: Way, level: Finality) -> list[Entry]:
        readers = {
            self._catalogue.topics_address: self._read_publication,
            self._catalogue.exchanges_address: self._read_message,
        }
        made = (readers.get(move.record.address, read_raw)(move, level, way) for move in way.moves)
        return [entry for entry in made if entry]

    def _read_publication(self, move: Move, level: Finality, way: Way) -> Entry | None:
        """None for what else our contract says, from which names are learnt."""
        if not is_telling(move.record):
            return None
        if is_published(move.record):
            return Entry(move, level, way.finalized, move.record.topics[WORD : 2 * WORD], is_plain=True)
        found = self._catalogue.read(move.row.log)
        return Entry(move, level, way.finalized, found.topic, is_plain=False) if isinstance(found, Published) else None

    def _read_message(self, move: Move, level: Finality, way: Way) -> Entry:
        """What else `Exchanges` says is a raw log, as that of any contract."""
        message = self._arrivals.find(move)
        if message is None:
            return read_raw(move, level, way)
        return Entry(move, level, way.finalized, message.topic, is_plain=False, queues=message.queues)

    def build_frames(self, way: Way, level: Finality, topic: bytes) -> list[bytes]:
        """Those of publications, of one topic or of all: what the entries of the way have, made with less."""
        frames: list[bytes] = []
        for run in way.runs:
            records = self._list_plain(run.records)
            if records is None:
                entries = self.build(replace(way, runs=(run,)), level)
                frames += [entry.frame for entry in self.select(entries, Selection(topic))]
            elif records:
                template = get_template(records[0], run.step, run.turn, run.chain_id, level, way.finalized)
                wanted = [one for one in records if one.topics[WORD : 2 * WORD] == topic] if topic else records
                frames += map(template.write, wanted)
        return frames

    def _list_plain(self, records: Sequence[Row]) -> Sequence[Row] | None:
        """Publications in the contract's own form, where there is nothing else to tell; None where there is."""
        address = self._catalogue.topics_address
        if all(record.address == address and is_published(record) for record in records):
            return records
        telling = [record for record in records if record.address != address or is_telling(record)]
        is_plain = all(record.address == address and is_published(record) for record in telling)
        return telling if is_plain else None

    def select(self, entries: Sequence[Entry], selection: Selection) -> list[Entry]:
        topic, catalogue = selection.topic, self._catalogue
        if not selection.is_by_topic:
            return [entry for entry in entries if selection.matches(entry.delivery.event, catalogue, entry.queues)]
        return [entry for entry in entries if entry.topic and (not topic or entry.topic == topic)]


def read_raw(move: Move, level: Finality, way: Way) -> Entry:
    return Entry(move, level, way.finalized, b"", is_plain=False)
