"""The columns of NEXMark's events: only those that are read are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from firesteel.connectors.generators import datagen_words as words
from firesteel.connectors.generators import nexmark
from firesteel.connectors.generators import nexmark_texts as texts
from firesteel.table.connectors.nexmark.events import AUCTION, BID, PERSON, Events, Numbers
from firesteel.types.arrow import require_pyarrow
from firesteel.types.logical import BigIntType, IntType, LogicalType, RowType, TimestampType, VarCharType

__all__ = ["ROW_TYPE", "Path", "generate", "numbers_of", "type_of"]

Path = tuple[str, ...]
"""A column, or a field of a column."""
Made = tuple[Numbers, Any]
"""Values, and None; or places in a column of texts, and that."""


def _table(values: Sequence[str]) -> Any:
    return require_pyarrow("SQL").array(values, "string")


@lru_cache(maxsize=32)
def _texts(make: Callable[..., Sequence[str]], *arguments: Any) -> Any:
    return _table(make(*arguments))


def _full_names() -> list[str]:
    return [f"{first} {last}" for first in words.FIRST_NAMES for last in words.LAST_NAMES]


def _emails() -> list[str]:
    return [
        f"{first}.{last}@{domain}".lower()
        for first in words.FIRST_NAMES
        for last in words.LAST_NAMES
        for domain in words.DOMAINS
    ]


def _descriptions() -> list[str]:
    return [f"{first} {second}" for first in words.WORDS for second in words.WORDS]


def _full_name(events: Events) -> Numbers:
    first, last = events.draw(0, len(words.FIRST_NAMES)), events.draw(8, len(words.LAST_NAMES))
    return first * len(words.LAST_NAMES) + last


def _credit_card(events: Events) -> Made:
    cards = (events.random >> np.uint64(4)).tolist()
    made = [" ".join(f"{card >> shift & 0x1FFF:04d}"[-4:] for shift in (0, 13, 26, 39)) for card in cards]
    return np.arange(len(made)), _table(made)


def _description(events: Events) -> Made:
    count = len(words.WORDS)
    return events.draw(12, count) * count + events.draw(20, count), _texts(_descriptions)


def _url(events: Events) -> Made:
    if events.config.has_many_channels:
        return events.channel, _texts(texts.channel_urls)
    return events.draw(40, len(words.WORDS)), _texts(texts.item_urls)


def _extra(size: str, others: int) -> Callable[[Events], Made]:
    def make(events: Events) -> Made:
        column = _texts(events.config.extras, getattr(events.config, size), others)
        return events.extra_place(len(column)), column

    return make


def _word(shift: int, values: Sequence[str]) -> Callable[[Events], Made]:
    return lambda events: (events.draw(shift, len(values)), _texts(list, tuple(values)))


_TEXT, _LONG, _TIME = VarCharType(), BigIntType(), TimestampType(3)
_RECORDS: dict[str, tuple[int, dict[str, tuple[LogicalType, Callable[[Events], Made]]]]] = {
    "person": (
        PERSON,
        {
            "id": (_LONG, lambda events: (events.last_person + nexmark.FIRST_PERSON_ID, None)),
            "name": (_TEXT, lambda events: (_full_name(events), _texts(_full_names))),
            "emailAddress": (
                _TEXT,
                lambda events: (_full_name(events) * len(words.DOMAINS) + events.draw(0, 3), _texts(_emails)),
            ),
            "creditCard": (_TEXT, _credit_card),
            "city": (_TEXT, _word(16, words.CITIES)),
            "state": (_TEXT, _word(24, words.STATES)),
            "dateTime": (_TIME, lambda events: (events.timestamps, None)),
            "extra": (_TEXT, _extra("person_size", nexmark.SIZE_OF_PERSON)),
        },
    ),
    "auction": (
        AUCTION,
        {
            "id": (_LONG, lambda events: (events.last_auction + nexmark.FIRST_AUCTION_ID, None)),
            "itemName": (_TEXT, _word(4, words.WORDS)),
            "description": (_TEXT, _description),
            "initialBid": (_LONG, lambda events: (events.price(16), None)),
            "reserve": (_LONG, lambda events: (events.price(16) + events.price(28), None)),
            "dateTime": (_TIME, lambda events: (events.timestamps, None)),
            "expires": (_TIME, lambda events: (events.expires, None)),
            "seller": (_LONG, lambda events: (events.seller, None)),
            "category": (
                _LONG,
                lambda events: (events.draw(44, nexmark.CATEGORIES) + nexmark.FIRST_CATEGORY_ID, None),
            ),
            "extra": (_TEXT, _extra("auction_size", nexmark.SIZE_OF_AUCTION)),
        },
    ),
    "bid": (
        BID,
        {
            "auction": (_LONG, lambda events: (events.some_auction, None)),
            "bidder": (_LONG, lambda events: (events.bidder, None)),
            "price": (_LONG, lambda events: (events.price(20), None)),
            "channel": (_TEXT, lambda events: (events.channel, _texts(texts.channel_names))),
            "url": (_TEXT, _url),
            "dateTime": (_TIME, lambda events: (events.timestamps, None)),
            "extra": (_TEXT, _extra("bid_size", nexmark.SIZE_OF_BID)),
        },
    ),
}

ROW_TYPE = RowType.of(
    ["event_type", *_RECORDS],
    [
        IntType(),
        *(RowType.of(list(fields), [type_ for type_, _ in fields.values()]) for _, fields in _RECORDS.values()),
    ],
    nullable=False,
)
"""The physical columns."""


def type_of(path: Path) -> LogicalType:
    """The type of a column or of a field."""
    column = ROW_TYPE.fields[ROW_TYPE.field_names.index(path[0])].type
    return column if len(path) == 1 else _RECORDS[path[0]][1][path[1]][0]


def numbers_of(config: nexmark.NexmarkConfig, indexes: range) -> Numbers:
    """The numbers of the events that come at indexes."""
    numbers = np.arange(indexes.start, indexes.stop, indexes.step, dtype=np.int64)
    group = config.out_of_order_group_size
    if group > 1:
        places = numbers % group
        numbers += places * nexmark.SHUFFLE % group - places
    return numbers


def generate(events: Events, kinds: frozenset[int], paths: Sequence[Path]) -> list[Any]:
    """The columns and fields of events, of which only some kinds are wanted."""
    if len(kinds) < 3:
        wanted = np.zeros(3, bool)
        wanted[list(kinds)] = True
        events = events.select(wanted[events.kinds])
    made: dict[int, _Records] = {}
    columns = []
    for path in paths:
        if path == ("event_type",):
            columns.append(require_pyarrow("SQL").array(events.kinds))
            continue
        kind, fields = _RECORDS[path[0]]
        if kind not in made:
            made[kind] = _Records(events, kind, kinds)
        record = made[kind]
        if len(path) == 2:
            columns.append(record.field(path[1], fields))
        else:
            columns.append(record.row(fields))
    return columns


class _Records:
    """Those of the events that have one kind; the others have nulls in their place."""

    def __init__(self, events: Events, kind: int, kinds: frozenset[int]) -> None:
        self._count = len(events)
        if kinds == {kind}:
            self._others: Numbers = None
            self._events = events
        else:
            is_kind = events.kinds == kind
            self._others = ~is_kind
            self._events = events.select(is_kind)

    def field(self, name: str, fields: dict[str, tuple[LogicalType, Callable[[Events], Made]]]) -> Any:
        """A field of each, null for other events."""
        pa = require_pyarrow("SQL")
        type_, make = fields[name]
        values, column = make(self._events)
        if self._others is not None:
            spread = np.zeros(self._count, np.int64)
            spread[~self._others] = values
            values = spread
        array = pa.array(values, mask=self._others)
        if column is not None:
            return column.take(array)
        return array.view(pa.timestamp("ms")) if type_ is _TIME else array

    def row(self, fields: dict[str, tuple[LogicalType, Callable[[Events], Made]]]) -> Any:
        """All fields of each."""
        pa = require_pyarrow("SQL")
        mask = None if self._others is None else pa.array(self._others)
        return pa.StructArray.from_arrays([self.field(name, fields) for name in fields], list(fields), mask=mask)
