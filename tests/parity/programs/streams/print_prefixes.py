"""The prefixes of print: of one and several subtasks, with and without an identifier."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3)
    words = env.from_collection(["a", "bb", "ccc"], Types.STRING())
    sent = words.partition_custom(lambda key, count: key % count, lambda word: len(word)).map(
        lambda word: word.upper(), Types.STRING()
    )
    sent.print()
    sent.print("words")
    words.print().set_parallelism(1)
    words.print("single").set_parallelism(1)
    sent.map(lambda word: (word, len(word))).print("untyped")
    sent.map(lambda word: "two\nlines").print("lines")
    env.execute()


if __name__ == "__main__":
    main()
