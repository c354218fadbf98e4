"""Where a subscriber begins: from the words of a request to a place on the chain."""

from proofcast.broker.catalogue import Catalogue
from proofcast.broker.selection import Selection
from proofcast.broker.start import AtBlock, AtTime, Newest, Oldest, Start
from proofcast.chain.segment import BlockId
from proofcast.cursor import Cursor
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.event import Finality
from proofcast.feed.io.history import History
from proofcast.feed.subject import Kind
from proofcast.feed.view import WHOLE_BLOCK, View
from proofcast.onchain.published import PUBLISHED, WORD
from proofcast.onchain.routed import ROUTED


class Beginnings:
    def __init__(self, history: History, catalogue: Catalogue) -> None:
        self._history, self._catalogue = history, catalogue

    def find(self, start: Start, level: Finality, selection: Selection) -> View:
        """What somebody holds that wants to start there."""
        if isinstance(start, Oldest):
            return self._history.get_oldest()
        if isinstance(start, Newest):
            return self._history.get_newest(level)
        if isinstance(start, Cursor):
            return find_cursor_view(start, self._history.get_chain_id())
        if isinstance(start, AtBlock):
            return self._find_before(start.number)
        if isinstance(start, AtTime):
            return self._history.find_before_time(start.timestamp)
        return self._find_before_sequence(start.sequence, selection)

    def _find_before_sequence(self, sequence: int, selection: Selection) -> View:
        catalogue, is_exchange = self._catalogue, selection.kind is Kind.EXCHANGE
        names = catalogue.exchanges if is_exchange else catalogue.names
        named = [topic for topic, name in names.items() if name == selection.name]
        topics = [selection.topic] if selection.topic else named
        if len(topics) != 1 or selection.kind is Kind.QUEUE:
            raise InvalidRequest(
                Reason.BAD_ARGUMENT,
                f"`sequence:{sequence}` needs one topic to count in, selected are `{len(topics)}`",
                hint="select a topic by its id, or start at a block, a time or a cursor",
            )
        words = (ROUTED if is_exchange else PUBLISHED) + topics[0] + sequence.to_bytes(WORD)
        address = catalogue.exchanges_address if is_exchange else catalogue.topics_address
        view = self._history.find_before_log(address, words)
        if view is None:
            raise Unavailable(
                Reason.NOT_YET,
                f"event `{sequence}` of the topic `0x{topics[0].hex()}` is not here",
                hint="start at `oldest` or `newest`, or ask a broker that began earlier",
            )
        return view

    def _find_before(self, number: int) -> View:
        block = self._history.find_block(number - 1)
        if block is None:
            return self._history.get_oldest()
        return View(block, WHOLE_BLOCK)


def find_cursor_view(cursor: Cursor, chain_id: int) -> View:
    if cursor.chain_id != chain_id:
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"the cursor is of chain `{cursor.chain_id}`, this broker follows `{chain_id}`",
            hint="ask a broker of that chain",
        )
    log_index = cursor.log_index if cursor.is_held else cursor.log_index - 1
    return View(BlockId(cursor.block_number, cursor.block_hash), log_index)
