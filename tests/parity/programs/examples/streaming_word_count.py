"""Counts words in streaming mode: a count for each word that comes, with its type and without."""

import argparse
import logging
import sys

from pyflink.common import Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

LINES = [
    "A lantern by the water",
    "the water by the mill",
    "",
    "  a mill,  a lantern;  a boat ",
]


def words_of(line):
    for word in line.lower().replace(",", " ").replace(";", " ").split():
        if word not in ("a", "the"):
            yield word


def word_count(mode):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    env.set_parallelism(1)
    words = env.from_collection(LINES, type_info=Types.STRING()).flat_map(words_of, Types.STRING())
    counts = (
        words.map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    counts.print()
    words.map(lambda word: (len(word), [word])).key_by(lambda pair: pair[0]).reduce(
        lambda one, other: (one[0], sorted(one[1] + other[1]))
    ).print("by length")
    env.execute("word count")


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", action="store_true")
    known, _ = parser.parse_known_args(sys.argv[1:])
    word_count(RuntimeExecutionMode.BATCH if known.batch else RuntimeExecutionMode.STREAMING)
