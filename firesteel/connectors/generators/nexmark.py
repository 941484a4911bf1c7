"""The NEXMark benchmark's stream of an auction house: persons, auctions and bids.

The mix and the ids follow the generator of Apache Beam and of the nexmark project: of fifty events one is a new person,
three are new auctions and the rest bids; bids prefer recent auctions, some of which are hot. Every event is a function
of its index and the seed, so a job that is restored sees the same events again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import SerializationSchema
from firesteel.connectors.base.rate_limiter import RateLimiterStrategy
from firesteel.connectors.generators import datagen_words as words
from firesteel.connectors.generators import nexmark_texts as texts
from firesteel.connectors.generators.datagen import DataGeneratorReader, DataGeneratorSource, GeneratorFunction
from firesteel.connectors.generators.datagen_fields import mix
from firesteel.moved_modules import stored_as
from firesteel.spi.source import ReaderContext, ReaderOutput

__all__ = [
    "Auction",
    "Bid",
    "NexmarkConfig",
    "NexmarkEvent",
    "NexmarkGenerator",
    "NexmarkJsonSchema",
    "NexmarkSource",
    "Person",
]

FIRST_PERSON_ID = FIRST_AUCTION_ID = FIRST_CATEGORY_ID = 1000
CATEGORIES = 5
PERSON_LEAD = 10
"""Persons whose record is yet to come may already sell and bid."""
AUCTION_LEAD = 10
ACTIVE_PEOPLE = 1000
IN_FLIGHT_AUCTIONS = 100
SIZE_OF_PERSON, SIZE_OF_AUCTION, SIZE_OF_BID = 76, 67, 32
"""What records have without their field ``extra``, about."""
SHUFFLE = 953
"""A prime: no group of events has it as a divisor, so multiplying by it puts a group in another order."""


@stored_as("firesteel.connectors.nexmark")
class Person(NamedTuple):
    """A person who sells and bids."""

    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    date_time: int
    extra: str


@stored_as("firesteel.connectors.nexmark")
class Auction(NamedTuple):
    """Something for sale until it expires."""

    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int
    extra: str


@stored_as("firesteel.connectors.nexmark")
class Bid(NamedTuple):
    """An item that a person offers in an auction."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: int
    extra: str


NexmarkEvent: TypeAlias = Person | Auction | Bid


@dataclass(frozen=True)
class NexmarkConfig:
    """How the events are mixed and spread over event time."""

    events_per_second: float = 10_000.0
    """How dense events are in event time, independent of the rate at which they are generated."""
    start_ms: int = 1_704_067_200_000
    """The event time of the first event."""
    person_proportion: int = 1
    auction_proportion: int = 3
    bid_proportion: int = 46
    hot_auction_ratio: int = 2
    """One bid in so many goes to any auction, the others to the hottest one; 1 for no hot ones."""
    hot_bidders_ratio: int = 4
    hot_sellers_ratio: int = 4
    out_of_order_group_size: int = 1
    """Events come in another order within groups of so many; 1 for none."""
    extra_bytes: int = 0
    """How much longer a record is made by its field ``extra``."""
    seed: int = 0
    person_size: int = 0
    """About how many bytes a person has, which ``extra`` fills up with letters; 0 for ``extra_bytes`` alone."""
    auction_size: int = 0
    bid_size: int = 0
    has_many_channels: bool = False
    """Whether half of the bids come from ten thousand channels beside the four, with addresses that name them."""

    def __post_init__(self) -> None:
        proportions = (self.person_proportion, self.auction_proportion, self.bid_proportion)
        if min(proportions) < 0 or self.person_proportion < 1 or self.auction_proportion < 1:
            raise InvalidProgramError(f"NexmarkConfig: there must be persons and auctions, not {proportions}.")
        ratios = (self.hot_auction_ratio, self.hot_bidders_ratio, self.hot_sellers_ratio, self.out_of_order_group_size)
        if min(ratios) < 1 or self.events_per_second <= 0:
            raise InvalidProgramError("NexmarkConfig: rates must be positive, ratios and group sizes at least 1.")

    @property
    def total_proportion(self) -> int:
        """How many events a round has."""
        return self.person_proportion + self.auction_proportion + self.bid_proportion

    def extras(self, size: int, others: int) -> texts.Texts:
        """The values of the field ``extra`` of records of a size, of which the other fields have some: one or many."""
        return texts.extra_texts(size - others) if size else ("x" * self.extra_bytes,)


class NexmarkGenerator(GeneratorFunction):
    """Makes the event of an index."""

    def __init__(self, config: NexmarkConfig | None = None) -> None:
        self.config = config = config or NexmarkConfig()
        self._total = config.total_proportion
        self._persons = config.person_proportion
        self._auctions = config.auction_proportion
        self._seed = mix(config.seed)
        self._ms_per_event = 1000.0 / config.events_per_second

    def map(self, value: int) -> NexmarkEvent:
        """The event of an index."""
        group = self.config.out_of_order_group_size
        number = value if group == 1 else value - value % group + value % group * SHUFFLE % group
        random = mix(number ^ self._seed)
        at = self.timestamp_of(number)
        rest = number % self._total
        if rest < self._persons:
            return self._person(number, random, at)
        if rest < self._persons + self._auctions:
            return self._auction(number, random, at)
        return self._bid(number, random, at)

    def timestamp_of(self, number: int) -> int:
        """The event time of an event, by its place in order."""
        return self.config.start_ms + int(number * self._ms_per_event)

    def _last_person(self, number: int) -> int:
        rounds, rest = divmod(number, self._total)
        return rounds * self._persons + min(rest, self._persons - 1)

    def _last_auction(self, number: int) -> int:
        rounds, rest = divmod(number, self._total)
        done = rest - self._persons
        if done < 0:
            return rounds * self._auctions - 1
        return rounds * self._auctions + min(done, self._auctions - 1)

    def _some_person(self, number: int, random: int) -> int:
        last = self._last_person(number)
        active = min(last, ACTIVE_PEOPLE)
        return last - active + random % (active + PERSON_LEAD) + FIRST_PERSON_ID

    def _some_auction(self, number: int, random: int) -> int:
        last = max(self._last_auction(number), 0)
        first = max(last - IN_FLIGHT_AUCTIONS, 0)
        return first + random % (last - first + 1 + AUCTION_LEAD) + FIRST_AUCTION_ID

    def _person(self, number: int, random: int, at: int) -> Person:
        first = words.FIRST_NAMES[random % len(words.FIRST_NAMES)]
        last = words.LAST_NAMES[(random >> 8) % len(words.LAST_NAMES)]
        card, config = random >> 4, self.config
        return Person(
            self._last_person(number) + FIRST_PERSON_ID,
            f"{first} {last}",
            f"{first}.{last}@{words.DOMAINS[random % 3]}".lower(),
            " ".join(f"{card >> shift & 0x1FFF:04d}"[-4:] for shift in (0, 13, 26, 39)),
            words.CITIES[(random >> 16) % len(words.CITIES)],
            words.STATES[(random >> 24) % len(words.STATES)],
            at,
            self._extra(config.person_size, SIZE_OF_PERSON, random),
        )

    def _auction(self, number: int, random: int, at: int) -> Auction:
        config = self.config
        if random % config.hot_sellers_ratio:
            seller = self._last_person(number) // 100 * 100 + FIRST_PERSON_ID
        else:
            seller = self._some_person(number, random >> 8)
        initial = price_of(random >> 16)
        # long enough for as many auctions as are open at a time
        span = max(int(IN_FLIGHT_AUCTIONS * self._total / self._auctions * self._ms_per_event), 1)
        return Auction(
            self._last_auction(number) + FIRST_AUCTION_ID,
            words.WORDS[(random >> 4) % len(words.WORDS)],
            f"{words.WORDS[(random >> 12) % len(words.WORDS)]} {words.WORDS[(random >> 20) % len(words.WORDS)]}",
            initial,
            initial + price_of(random >> 28),
            at,
            at + 1 + (random >> 36) % (2 * span),
            seller,
            FIRST_CATEGORY_ID + (random >> 44) % CATEGORIES,
            self._extra(config.auction_size, SIZE_OF_AUCTION, random),
        )

    def _bid(self, number: int, random: int, at: int) -> Bid:
        config = self.config
        if random % config.hot_auction_ratio:
            auction = max(self._last_auction(number), 0) // 100 * 100 + FIRST_AUCTION_ID
        else:
            auction = self._some_auction(number, random >> 8)
        if (random >> 24) % config.hot_bidders_ratio:
            bidder = self._last_person(number) // 100 * 100 + 1 + FIRST_PERSON_ID
        else:
            bidder = self._some_person(number, random >> 32)
        if config.has_many_channels:
            place = (random >> 4) % 4 if random >> 44 & 1 else 4 + (random >> 45) % texts.CHANNELS
            channel, url = texts.channel_names()[place], texts.channel_urls()[place]
        else:
            channel, url = texts.HOT_CHANNELS[(random >> 4) % 4], texts.item_urls()[(random >> 40) % len(words.WORDS)]
        extra = self._extra(config.bid_size, SIZE_OF_BID, random)
        return Bid(auction, bidder, price_of(random >> 20), channel, url, at, extra)

    def _extra(self, size: int, others: int, random: int) -> str:
        found = self.config.extras(size, others)
        return found[0] if len(found) == 1 else found[texts.extra_of(random)]


def price_of(random: int) -> int:
    """From a dollar to a million, in cents; as many of one size as of ten times that."""
    return int(10.0 ** ((random & 0xFFFF) / 0x10000 * 6.0) * 100.0)


class NexmarkSource(DataGeneratorSource):
    """Emits NEXMark events with their event time; ``rate`` is how many a second all readers make together."""

    name: ClassVar[str] = "NEXMark"

    def __init__(
        self, count: int | None = None, rate: float | None = None, config: NexmarkConfig | None = None
    ) -> None:
        strategy = RateLimiterStrategy.no_op() if rate is None else RateLimiterStrategy.per_second(rate)
        super().__init__(NexmarkGenerator(config), count, strategy)

    def create_reader(self, context: ReaderContext) -> DataGeneratorReader:
        """A reader that adds event time."""
        limiter = self.rate_limiter_strategy.create_rate_limiter(
            context.parallelism, self.clock, catches_up=context.execution.has_idle_gaps
        )
        return _NexmarkReader(context, self.generator_function, limiter, time.monotonic)


class _NexmarkReader(DataGeneratorReader):
    copies_records = False

    def read_split(self, index: int, output: ReaderOutput, max_records: int) -> Any:
        return super().read_split(index, _WithEventTime(output), max_records)


class _WithEventTime:
    """Passes records on with the event time that they carry."""

    def __init__(self, output: ReaderOutput) -> None:
        self._output = output
        self.release_split = output.release_split
        self.emit_watermark = output.emit_watermark
        self.emit_side = output.emit_side

    def collect(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None = None) -> None:
        self._output.collect(split_id, values, [event.date_time for event in values])


class NexmarkJsonSchema(SerializationSchema):
    """Events as JSON: ``{"event_type": 2, "bid": {…}}``, with 0 for a person and 1 for an auction."""

    def serialize(self, element: NexmarkEvent) -> bytes:
        """One event."""
        number, name = _KINDS[type(element)]
        return json.dumps({"event_type": number, name: element._asdict()}, separators=(",", ":")).encode()


_KINDS = {Person: (0, "person"), Auction: (1, "auction"), Bid: (2, "bid")}
