"""Names of PyFlink's modules: resolves them to Firesteel's modules.

In the processes that Firesteel starts, such as the workers that run a job's functions, they always are. A program asks
for it with ``import firesteel.pyflink`` or ``firesteel run --pyflink``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["is_pyflink_program", "resolve_pyflink_names"]

_PYFLINK, _OWN = "pyflink", "firesteel"
_NO_CONNECTOR = "The connector is implemented in Java. Implement Source or Sink, or connect through Kafka or files."
_INSTEAD = {
    **{
        f"pyflink.datastream.connectors.{name}": _NO_CONNECTOR
        for name in ("cassandra", "dynamic_kafka", "elasticsearch", "kinesis", "pulsar", "rabbitmq")
    },
    "pyflink.java_gateway": "There is no JVM to call: use the Python API.",
    "pyflink.fn_execution": "It is internal to PyFlink.",
}


class _Names(MetaPathFinder, Loader):
    """Finds a module of PyFlink, which is the module of Firesteel with the same path."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != _PYFLINK:
            return None
        if importlib.util.find_spec(_own_name(fullname)) is None:
            reason = _INSTEAD.get(fullname, "It is not available.")
            raise ModuleNotFoundError(f"Firesteel has no module '{fullname}'. {reason}", name=fullname)
        return ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Puts Firesteel's module in the place of the new one, so that its classes exist once."""
        sys.modules[module.__name__] = importlib.import_module(_own_name(module.__name__))


def _own_name(name: str) -> str:
    return _OWN + name.removeprefix(_PYFLINK)


_names = _Names()


def is_pyflink_program() -> bool:
    """Whether the program of this process has been written for PyFlink, by its own account."""
    return f"{_OWN}.pyflink" in sys.modules


def resolve_pyflink_names() -> None:
    """Lets PyFlink's names be Firesteel's in this process."""
    if _names in sys.meta_path:
        return
    sys.meta_path.insert(0, _names)
