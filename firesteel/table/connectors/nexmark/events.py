"""The numbers behind NEXMark's events, for many events at once: the same that ``NexmarkGenerator`` has for one."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from firesteel.connectors.generators import nexmark
from firesteel.connectors.generators import nexmark_texts as texts
from firesteel.connectors.generators.datagen_fields import mix

__all__ = ["AUCTION", "BID", "PERSON", "Events", "Numbers", "mix_all", "prices"]

PERSON, AUCTION, BID = 0, 1, 2
"""The values of the column ``event_type``."""
Numbers = Any
"""A numpy array of int64; random bits are uint64."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix_all(values: Numbers) -> Numbers:
    """64 random bits for each number; as ``datagen_fields.mix``."""
    bits = values.astype(np.uint64)
    bits += _GOLDEN
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits


@lru_cache(maxsize=1)
def prices() -> Numbers:
    """The price for each value of 16 bits."""
    return np.array([nexmark.price_of(bits) for bits in range(0x10000)], np.int64)


class Events:
    """Events by their numbers, all of one kind or mixed. Each array is made when it is asked for, once."""

    def __init__(self, config: nexmark.NexmarkConfig, numbers: Numbers) -> None:
        self.config = config
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def select(self, mask: Numbers) -> Events:
        """Some of the events."""
        return Events(self.config, self.numbers[mask])

    @cached_property
    def random(self) -> Numbers:
        """The random bits of each event."""
        return mix_all(self.numbers ^ np.int64(_signed(mix(self.config.seed))))

    def draw(self, shift: int, bound: int) -> Numbers:
        """Random numbers below a bound, from the bits behind a number of them."""
        bits = self.random >> np.uint64(shift)
        if bound & (bound - 1) == 0:
            bits &= np.uint64(bound - 1)
            return bits.view(np.int64)
        return (bits % np.uint64(bound)).view(np.int64)

    def draw_below(self, shift: int, bounds: Numbers) -> Numbers:
        """The same with a bound for each."""
        return ((self.random >> np.uint64(shift)) % bounds.view(np.uint64)).view(np.int64)

    @cached_property
    def rounds(self) -> tuple[Numbers, Numbers]:
        """The round of each event, and its place in that."""
        total = self.config.total_proportion
        rounds = self.numbers // total
        return rounds, self.numbers - rounds * total

    @cached_property
    def kinds(self) -> Numbers:
        """The kind of each event, as int32."""
        places, config = self.rounds[1], self.config
        by_place = np.full(config.total_proportion, BID, np.int32)
        by_place[: config.person_proportion + config.auction_proportion] = AUCTION
        by_place[: config.person_proportion] = PERSON
        return by_place[places]

    @cached_property
    def timestamps(self) -> Numbers:
        """Event time in milliseconds."""
        since_start = (self.numbers * (1000.0 / self.config.events_per_second)).astype(np.int64)
        since_start += self.config.start_ms
        return since_start

    @cached_property
    def last_person(self) -> Numbers:
        """The number of the latest person at each event."""
        rounds, places = self.rounds
        count = self.config.person_proportion
        return rounds * count + np.minimum(places, count - 1)

    @cached_property
    def last_auction(self) -> Numbers:
        """The number of the latest auction at each event; -1 before the first."""
        rounds, places = self.rounds
        count = self.config.auction_proportion
        done = places - self.config.person_proportion
        return rounds * count + np.clip(done, -1, count - 1)

    @cached_property
    def some_auction(self) -> Numbers:
        """The auction of a bid: the hot one or any that is open."""
        last = np.maximum(self.last_auction, 0)
        first = np.maximum(last - nexmark.IN_FLIGHT_AUCTIONS, 0)
        chosen = first + self.draw_below(8, last - first + (1 + nexmark.AUCTION_LEAD))
        is_hot = self.draw(0, self.config.hot_auction_ratio) != 0
        return np.where(is_hot, last // 100 * 100, chosen) + nexmark.FIRST_AUCTION_ID

    def some_person(self, shift: int, is_hot: Numbers, offset: int) -> Numbers:
        """Who sells or bids: the hot person or anyone who is active."""
        last = self.last_person
        active = np.minimum(last, nexmark.ACTIVE_PEOPLE)
        chosen = last - active + self.draw_below(shift, active + nexmark.PERSON_LEAD)
        return np.where(is_hot, last // 100 * 100 + offset, chosen) + nexmark.FIRST_PERSON_ID

    @cached_property
    def seller(self) -> Numbers:
        """Who sells at an auction."""
        return self.some_person(8, self.draw(0, self.config.hot_sellers_ratio) != 0, 0)

    @cached_property
    def bidder(self) -> Numbers:
        """Who makes a bid."""
        return self.some_person(32, self.draw(24, self.config.hot_bidders_ratio) != 0, 1)

    @cached_property
    def channel(self) -> Numbers:
        """The channel of a bid."""
        if not self.config.has_many_channels:
            return self.draw(4, len(texts.HOT_CHANNELS))
        others = self.draw(45, texts.CHANNELS) + len(texts.HOT_CHANNELS)
        return np.where(self.draw(44, 2) == 1, self.draw(4, 4), others)

    def price(self, shift: int) -> Numbers:
        """A price in cents."""
        return prices()[self.draw(shift, 0x10000)]

    @cached_property
    def expires(self) -> Numbers:
        """When an auction ends, in milliseconds."""
        config = self.config
        milliseconds = 1000.0 / config.events_per_second
        rounds = config.total_proportion / config.auction_proportion
        span = max(int(nexmark.IN_FLIGHT_AUCTIONS * rounds * milliseconds), 1)
        return self.timestamps + 1 + self.draw(36, 2 * span)

    def extra_place(self, count: int) -> Numbers:
        """Which of so many texts fills up an event."""
        if count == 1:
            return np.zeros(len(self), np.int64)
        return ((self.random * _GOLDEN) >> np.uint64(52)).view(np.int64)


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits
