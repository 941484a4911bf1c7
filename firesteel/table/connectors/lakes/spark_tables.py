"""Tables of lakes that Spark's own readers read in bounded queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.table.evaluation.spark_text import spark_type
from firesteel.table.names import quoted
from firesteel.types.logical import RowType

__all__ = ["SparkLakeTable", "has_class"]


@dataclass(frozen=True)
class SparkLakeTable:
    """A table by the name of Spark's reader, its place and the options of the reader."""

    format: str
    path: str
    options: tuple[tuple[str, str], ...]
    type: RowType

    def describe(self) -> str:
        """What EXPLAIN shows."""
        given = "".join(f", {name} {value}" for name, value in self.options)
        return f"Spark ({self.format}{given}): {self.path}"

    def dataframe(self, session: Any) -> Any:
        """The rows, with the types that the table declares."""
        found = session.read.format(self.format).options(**dict(self.options)).load(self.path)
        return found.selectExpr(
            *(
                f"CAST({quoted(part.name)} AS {spark_type(part.type)}) AS {quoted(part.name)}"
                for part in self.type.fields
            )
        )


def has_class(session: Any, name: str) -> bool:
    """Whether the JVM of a session has a class, also from jars that were added."""
    loader = session._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None
