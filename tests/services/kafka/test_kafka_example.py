from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from firesteel.connectors.generators.nexmark import Bid, NexmarkGenerator
from firesteel.datastream import stream_execution_environment
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.services.kafka_broker import KafkaBroker

sys.path.insert(0, str(Path(__file__).parents[3]))

from examples import kafka_auctions


def test_auctions_over_kafka(
    kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stream_execution_environment, "resolve_executor", lambda configuration: InProcessExecutor())
    for topic in ("events", "hot"):
        kafka.create_topic(topic, 2)
    arguments = ["kafka_auctions", "--bootstrap-servers", kafka.bootstrap_servers, "--events", "20000"]
    monkeypatch.setattr(sys, "argv", arguments)
    kafka_auctions.main()
    bids = Counter(
        (event.auction, event.date_time // 10_000)
        for event in map(NexmarkGenerator(kafka_auctions.CONFIG).map, range(20_000))
        if isinstance(event, Bid)
    )
    hot = sorted((count for count in bids.values() if count >= 100), reverse=True)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{len(hot)} times an auction had a hundred bids")
    assert [int(line.split()[2]) for line in others] == hot[:5]
