"""A program that parses its own arguments, with defaults, and logs."""

import argparse
import logging
import sys

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def run(words, greeting):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    logging.info("greeting %s", words)
    env.from_collection(words, Types.STRING()).map(lambda word: f"{greeting}, {word}!", Types.STRING()).print()
    env.execute("greetings")


def main():
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--greeting", default="Hello", required=False, help="what to say")
    parser.add_argument("--word", dest="words", action="append", help="whom to greet")
    known_args, _ = parser.parse_known_args([])
    run(known_args.words or ["world", "moon"], known_args.greeting)


if __name__ == "__main__":
    main()
