"""The texts of NEXMark's events: channels, addresses of items, and what fills records up to a size."""

from __future__ import annotations

import string
from functools import lru_cache

from firesteel.connectors.generators.datagen_fields import mix
from firesteel.connectors.generators.datagen_words import WORDS

__all__ = [
    "CHANNELS",
    "EXTRAS",
    "HOT_CHANNELS",
    "Texts",
    "channel_names",
    "channel_urls",
    "extra_of",
    "extra_texts",
    "item_urls",
]

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
"""How many channels there are beside the hot ones."""
EXTRAS = 4096
"""How many texts of one kind there are to fill up records."""
_LETTERS = 1 << 16
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 0xFFFFFFFFFFFFFFFF

Texts = tuple[str, ...]


def extra_of(random: int) -> int:
    """Which of the texts a record gets."""
    return (random * _GOLDEN & _MASK) >> 52


@lru_cache(maxsize=1)
def _letters() -> str:
    alphabet = string.ascii_lowercase
    table = bytes(ord(alphabet[code % len(alphabet)]) for code in range(256))
    numbers = b"".join(mix(number).to_bytes(8, "little") for number in range(_LETTERS // 8))
    return numbers.translate(table).decode("ascii")


@lru_cache(maxsize=1)
def channel_names() -> Texts:
    """The hot channels, then the others."""
    return (*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS)))


@lru_cache(maxsize=1)
def item_urls() -> Texts:
    """Addresses of items where there are four channels."""
    return tuple(f"https://www.example.com/{word}/item.htm" for word in WORDS)


@lru_cache(maxsize=1)
def channel_urls() -> Texts:
    """The address of the items of each channel; nine of ten addresses of those that are not hot have its id."""
    letters = _letters()
    urls = []
    for number in range(len(HOT_CHANNELS) + CHANNELS):
        first, second, third = (letters[place : place + 5] for place in range(number * 6, number * 6 + 15, 5))
        random = mix(number)
        has_id = number >= len(HOT_CHANNELS) and random % 10
        suffix = f"&channel_id={random >> 33}" if has_id else ""
        urls.append(f"https://www.example.com/{first}/{second}/{third}/item.htm?query=1{suffix}")
    return tuple(urls)


@lru_cache(maxsize=16)
def extra_texts(average: int) -> Texts:
    """Texts whose lengths are within a fifth of an average.

    >>> texts = extra_texts(100)
    >>> len(texts) == EXTRAS and min(map(len, texts)) >= 80 and max(map(len, texts)) < 120
    True
    """
    average = max(average, 0)
    delta = round(average * 0.2)
    letters = _letters() * (1 + 2 * average // _LETTERS)
    texts = []
    for number in range(EXTRAS):
        random = mix(number)
        length = average - delta + (random % (2 * delta) if delta else 0)
        place = (random >> 32) % (len(letters) - length)
        texts.append(letters[place : place + length])
    return tuple(texts)
