from __future__ import annotations

import json
from collections import Counter
from itertools import groupby

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.generators.nexmark import (
    Auction,
    Bid,
    NexmarkConfig,
    NexmarkGenerator,
    NexmarkJsonSchema,
    NexmarkSource,
    Person,
)
from firesteel.datastream import ProcessFunction


class WithTime(ProcessFunction):
    def process_element(self, value, ctx):
        yield type(value).__name__, value.date_time - ctx.timestamp()


def events(count, **settings):
    generator = NexmarkGenerator(NexmarkConfig(**settings))
    return [generator.map(index) for index in range(count)]


def test_the_mix_and_the_ids():
    made = events(5000)
    assert Counter(map(type, made)) == {Person: 100, Auction: 300, Bid: 4600}
    persons = [event.id for event in made if isinstance(event, Person)]
    auctions = [event.id for event in made if isinstance(event, Auction)]
    assert persons == list(range(1000, 1100))
    assert auctions == list(range(1000, 1300))
    for bid in made:
        if isinstance(bid, Bid):
            assert 1000 <= bid.auction < 1310
            assert 1000 <= bid.bidder < 1110
            assert 100 <= bid.price <= 100_000_000


def test_the_same_seed_gives_the_same_events():
    assert events(200, seed=1) == events(200, seed=1) != events(200, seed=2)


def test_event_time_follows_the_rate():
    made = events(1001, events_per_second=1000)
    assert made[1000].date_time - made[0].date_time == 1000
    assert [event.date_time for event in made] == sorted(event.date_time for event in made)


def test_out_of_order_within_groups_only():
    plain = events(300, events_per_second=1000)
    mixed = events(300, events_per_second=1000, out_of_order_group_size=100)
    assert mixed != plain
    for group in range(0, 300, 100):
        assert sorted(mixed[group : group + 100], key=repr) == sorted(plain[group : group + 100], key=repr)


def test_hot_auctions_make_skew():
    def most_frequent(ratio):
        bids = Counter(event.auction for event in events(10_000, hot_auction_ratio=ratio) if isinstance(event, Bid))
        return bids.most_common(1)[0][1] / sum(bids.values())

    assert most_frequent(1) < 0.05 < most_frequent(4)


def test_impossible_settings():
    with pytest.raises(InvalidProgramError, match="there must be persons and auctions"):
        NexmarkConfig(person_proportion=0)
    with pytest.raises(InvalidProgramError, match="rates must be positive"):
        NexmarkConfig(events_per_second=0)


def test_json():
    person, auction, bid = events(5)[0], events(5)[1], events(5)[4]
    schema = NexmarkJsonSchema()
    assert json.loads(schema.serialize(person)) == {"event_type": 0, "person": person._asdict()}
    assert json.loads(schema.serialize(auction)) == {"event_type": 1, "auction": auction._asdict()}
    assert json.loads(schema.serialize(bid)) == {"event_type": 2, "bid": bid._asdict()}


def test_as_a_source_with_event_time(in_process_env):
    env = in_process_env(2)
    stream = env.from_source(
        NexmarkSource(1000, config=NexmarkConfig(events_per_second=100)),
        WatermarkStrategy.for_monotonous_timestamps(),
        "auctions",
    )

    with stream.process(WithTime()).execute_and_collect() as results:
        found = sorted(results)
    assert {kind: len(list(group)) for kind, group in groupby(found, lambda pair: pair[0])} == {
        "Auction": 60,
        "Bid": 920,
        "Person": 20,
    }
    assert {difference for _, difference in found} == {0}
