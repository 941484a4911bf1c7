"""Builds the connector for Flink that makes the same events, and the texts which it reads."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["build_jar", "write_texts"]

JAVA = Path(__file__).parent / "java" / "NexmarkTable.java"


def build_jar(directory: Path, libraries: Path) -> Path:
    """Compiles the connector against Flink's libraries."""
    classes = directory / "classes"
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True, exist_ok=True)
    (services / "org.apache.flink.table.factories.Factory").write_text("NexmarkTable\n", "utf-8")
    subprocess.run(["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", str(classes), str(JAVA)], check=True)
    jar = directory / "nexmark-table.jar"
    subprocess.run(["jar", "cf", str(jar), "-C", str(classes), "."], check=True)
    return jar


def write_texts(directory: Path) -> Path:
    """Writes the words that events are made of."""
    from firesteel.connectors.generators import datagen_words as words
    from firesteel.connectors.generators import nexmark
    from firesteel.connectors.generators import nexmark_texts as texts

    # the sizes that the connector has by default
    config = nexmark.NexmarkConfig(person_size=200, auction_size=500, bid_size=100)
    target = directory / "texts"
    target.mkdir(parents=True, exist_ok=True)
    lists: dict[str, Iterable[object]] = {
        "first_names": words.FIRST_NAMES,
        "last_names": words.LAST_NAMES,
        "domains": words.DOMAINS,
        "cities": words.CITIES,
        "states": words.STATES,
        "words": words.WORDS,
        "channels": texts.channel_names(),
        "urls": texts.channel_urls(),
        "prices": map(nexmark.price_of, range(0x10000)),
        "person_extras": config.extras(config.person_size, nexmark.SIZE_OF_PERSON),
        "auction_extras": config.extras(config.auction_size, nexmark.SIZE_OF_AUCTION),
        "bid_extras": config.extras(config.bid_size, nexmark.SIZE_OF_BID),
    }
    for name, values in lists.items():
        (target / f"{name}.txt").write_text("\n".join(map(str, values)), "utf-8")
    return target
