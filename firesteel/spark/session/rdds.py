"""Spark RDDs of stages. Classes and constants of the JVM are looked up once: each call is a round trip.

What is passed around are handles of Scala's ``RDD`` itself, not of the Java API's wrappers around it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.util import _load_from_socket

from firesteel.spark.session.worker_environment import WorkerEnvironment

__all__ = ["JavaRDD", "PythonStage", "Rdds"]

JavaRDD = Any
"""A handle of an ``org.apache.spark.rdd.RDD``."""

PythonStage = Callable[[int, Iterator[bytes]], Iterable[bytes]]
"""What a Python worker does with one partition: its index and its rows."""

MAX_COMMAND_BYTES = 1 << 20
"""What is longer goes to each executor once, by a broadcast, and from there to the worker through a file."""
_RAW = NoOpSerializer()
_rdds: WeakKeyDictionary[SparkContext, Rdds] = WeakKeyDictionary()


class Rdds:
    """Makes RDDs of one SparkContext."""

    def __init__(self, context: SparkContext):
        jvm, self._context = context._jvm, context
        assert jvm is not None
        self._jvm = jvm
        self._scala = context._jsc.sc()
        self._function = jvm.SimplePythonFunction
        self._python_rdd = jvm.PythonRDD
        self._pairs = jvm.PairwiseRDD
        self._partitioner = jvm.PythonPartitioner
        self._to_seq = jvm.PythonUtils.toSeq
        self._list = jvm.java.util.ArrayList
        rdds = jvm.org.apache.spark.rdd
        self._union, self._shuffled, self._coalesced = rdds.UnionRDD, rdds.ShuffledRDD, rdds.CoalescedRDD
        self._cartesian = rdds.CartesianRDD
        self._prune = rdds.PartitionPruningRDD.create
        self._to_pairs = jvm.org.apache.spark.api.java.JavaPairRDD.fromRDD
        self._none = jvm.scala.Option.empty()
        self._by_number = getattr(getattr(jvm, "scala.math.Ordering$Long$"), "MODULE$")
        self._empty: dict[int, JavaRDD] = {}
        self._selections: dict[tuple[int, int, int], Any] = {}
        self._environments: dict[tuple[tuple[str, str], ...], Any] = {}
        self._common = WorkerEnvironment()
        self._broadcasts = self._list()
        self._tag = self.empty(1).elementClassTag()

    @classmethod
    def of(cls, context: SparkContext) -> Rdds:
        """Those of a context, the same ones each time."""
        if context not in _rdds:
            _rdds[context] = cls(context)
        return _rdds[context]

    # -- inputs -------------------------------------------------------------------------------------

    def empty(self, partitions: int) -> JavaRDD:
        """So many partitions without rows."""
        if partitions not in self._empty:
            self._empty[partitions] = self._context._jsc.parallelize(self._list(), partitions).rdd()
        return self._empty[partitions]

    def located(self, location: str) -> JavaRDD:
        """One partition with one row, at its best at that place: see ``at``."""
        pair = self._jvm.scala.Tuple2(bytearray(), self._to_seq([location]))
        return self._scala.makeRDD(self._to_seq([pair]), self._tag)

    def partitions(self, rdd: JavaRDD) -> int:
        """How many partitions an RDD has."""
        return int(rdd.getNumPartitions())

    # -- Python -------------------------------------------------------------------------------------

    def _variables(self, environment: WorkerEnvironment) -> Any:
        """The environment variables of Python workers, those with the same ones being interchangeable."""
        merged = {**self._context.environment, **environment.variables}
        key = tuple(sorted(merged.items()))
        if key not in self._environments:
            variables = self._jvm.java.util.HashMap()
            for name, value in merged.items():
                variables.put(name, value)
            self._environments[key] = variables
        return self._environments[key]

    def broadcasts(self, *broadcasts: Any) -> Any:
        """The broadcasts that a stage uses, for ``python``."""
        handles = self._list()
        for broadcast in broadcasts:
            handles.add(broadcast._jbroadcast)
        return handles

    def python(
        self,
        parent: JavaRDD,
        stage: PythonStage,
        environment: WorkerEnvironment | None = None,
        broadcasts: Any = None,
    ) -> JavaRDD:
        """Has Python workers work on the partitions of an RDD of bytes; it is one of bytes itself.

        The stage must be an instance of an importable class. Broadcasts it holds must be among ``broadcasts``.
        """
        command = pickle.dumps((stage, None, _RAW, _RAW), pickle.HIGHEST_PROTOCOL)
        self._context._pickled_broadcast_vars.clear()
        return self._python(parent, command, environment, self._broadcasts if broadcasts is None else broadcasts)

    def shipped(
        self,
        parent: JavaRDD,
        stage: PythonStage,
        environment: WorkerEnvironment | None = None,
        *,
        barrier: bool = False,
    ) -> tuple[JavaRDD, Any]:
        """As ``python``, for a stage that may be large: then it is broadcast, and the broadcast returned as well.

        With ``barrier`` Spark starts all its tasks at the same time.
        """
        command = pickle.dumps((stage, None, _RAW, _RAW), pickle.HIGHEST_PROTOCOL)
        if len(command) <= MAX_COMMAND_BYTES:
            return self._python(parent, command, environment, self._broadcasts, barrier=barrier), None
        broadcast = self._context.broadcast(command)
        reference = pickle.dumps(broadcast, pickle.HIGHEST_PROTOCOL)
        self._context._pickled_broadcast_vars.clear()
        return self._python(parent, reference, environment, self.broadcasts(broadcast), barrier=barrier), broadcast

    def _python(
        self,
        parent: JavaRDD,
        command: bytes,
        environment: WorkerEnvironment | None,
        broadcasts: Any,
        *,
        barrier: bool = False,
    ) -> JavaRDD:
        context, environment = self._context, environment or self._common
        function = self._function(
            bytearray(command),
            self._variables(environment),
            context._python_includes,
            environment.executable or context.pythonExec,
            context.pythonVer,
            broadcasts,
            context._javaAccumulator,
        )
        return self._python_rdd(parent, function, False, barrier)

    # -- exchanges ----------------------------------------------------------------------------------

    def union(self, parts: Sequence[JavaRDD]) -> JavaRDD:
        """All partitions of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        handles = self._list()
        for part in parts:
            handles.add(part)
        return self._union(self._scala, self._to_seq(handles), self._tag)

    def pairs(self, rows: JavaRDD) -> JavaRDD:
        """Numbers and rows, of alternating numbers and rows."""
        return self._pairs(rows)

    def shuffle(self, pairs: JavaRDD, partitions: int, *, is_sorted: bool) -> JavaRDD:
        """Pairs by the partition in their number, optionally sorted by the number; Spark's sort spills."""
        shuffled = self._shuffled(pairs, self._partitioner(partitions, 0), self._tag, self._tag, self._tag)
        if is_sorted:
            shuffled.setKeyOrdering(self._by_number)
        return shuffled

    def rows(self, pairs: JavaRDD) -> JavaRDD:
        """The rows without their numbers."""
        return self._to_pairs(pairs, self._tag, self._tag).values().rdd()

    def select(self, rdd: JavaRDD, first: int, count: int, total: int) -> JavaRDD:
        """Some of the partitions, which follow one another; nothing is moved or computed for that."""
        if count == total:
            return rdd
        key = (first, count, total)
        if key not in self._selections:
            # in Scala a Seq[Boolean] is a function of the index
            self._selections[key] = self._to_seq([first <= index < first + count for index in range(total)])
        return self._prune(rdd, self._selections[key])

    def concatenate(self, parts: Sequence[JavaRDD]) -> JavaRDD:
        """All partitions of all parts, one after the other, as one partition; no shuffle."""
        if len(parts) == 1:
            return parts[0]
        return self._coalesced(self.union(parts), 1, self._none, self._tag)

    def at(self, place: JavaRDD, rows: JavaRDD) -> JavaRDD:
        """The rows of a single partition, to be computed at the place if it can be."""
        # a Cartesian product is the one RDD that has the preferred locations of both its parents
        return self.rows(self._cartesian(self._scala, place, rows, self._tag, self._tag))

    # -- running and cleaning -----------------------------------------------------------------------

    def collect(self, rdd: JavaRDD) -> list[bytes]:
        served = self._python_rdd.collectAndServe(rdd)
        with _load_from_socket(served, _RAW) as rows:
            return [bytes(row) for row in rows]

    def shuffle_id(self, shuffled: JavaRDD) -> int:
        """Names a shuffle, for ``forget``."""
        return int(shuffled.dependencies().head().shuffleId())

    def forget(self, shuffles: Iterable[int]) -> None:
        """Removes the files of shuffles; without that Spark would wait for Java's garbage collection."""
        cleaner = self._scala.cleaner()
        if cleaner.isDefined():
            cleaner = cleaner.get()
            for shuffle in shuffles:
                cleaner.doCleanupShuffle(shuffle, False)
