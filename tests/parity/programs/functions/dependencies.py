"""Python files and archives of a job: modules that functions import, and data that they open."""

import tempfile
import zipfile
from pathlib import Path

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Lookup(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        texts = [Path(name, "words.txt").read_text(encoding="utf-8") for name in ("words.zip", "renamed")]
        self.words = " ".join(texts).split()

    def map(self, value):
        return self.words[value % len(self.words)]


def shout(value):
    from parity_package.inner import ends  # type: ignore[import-not-found]
    from parity_shouting import shout  # type: ignore[import-not-found]

    return shout(value) + ends()


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "parity_shouting.py").write_text("def shout(text):\n    return text.upper() + '!'\n", encoding="utf-8")
        package = root / "packages/parity_package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("", encoding="utf-8")
        (package / "inner.py").write_text("def ends():\n    return '?'\n", encoding="utf-8")
        with zipfile.ZipFile(root / "words.zip", "w") as archive:
            archive.writestr("words.txt", "zero one two\n")
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        env.add_python_file(str(root / "parity_shouting.py"))
        env.add_python_file(str(root / "packages"))
        env.add_python_archive(str(root / "words.zip"))
        env.add_python_archive(str(root / "words.zip"), "renamed")
        numbers = env.from_collection([0, 1, 2, 4], Types.INT())
        words = numbers.map(Lookup(), Types.STRING())
        words.map(shout, Types.STRING()).print()
        env.execute()


if __name__ == "__main__":
    main()
