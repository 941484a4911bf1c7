"""Counts words: the smallest program with an exchange between tasks and state per key."""

from __future__ import annotations

import argparse
import re

from firesteel.datastream import StreamExecutionEnvironment

TEXT = """\
To be, or not to be, that is the question:
Whether 'tis nobler in the mind to suffer
The slings and arrows of outrageous fortune,
Or to take arms against a sea of troubles
And by opposing end them.
"""


def words(line: str) -> list[tuple[str, int]]:
    return [(word, 1) for word in re.findall(r"[a-z']+", line.lower())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", metavar="PATH", help="a text file or a directory of them (default: five lines)")
    parser.add_argument("--parallelism", type=int, default=2, help="subtasks per operator (default: 2)")
    parser.add_argument("--top", type=int, default=8, help="how many words to show (default: 8)")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(options.parallelism)
    lines = env.read_text_file(options.input) if options.input else env.from_collection(TEXT.splitlines())
    counts = lines.flat_map(words).key_by(lambda pair: pair[0]).sum(1)

    # A sum on a keyed stream gives a new result with every record: the last one of a word is its count.
    latest: dict[str, int] = {}
    updates = 0
    with counts.execute_and_collect("word count") as results:
        for word, count in results:
            latest[word] = count
            updates += 1

    print(f"{updates} words, {len(latest)} different ones:")
    for word, count in sorted(latest.items(), key=lambda item: (-item[1], item[0]))[: options.top]:
        print(f"{count:>6}  {word}")


if __name__ == "__main__":
    main()
