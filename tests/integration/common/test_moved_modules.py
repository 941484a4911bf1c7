"""Old names of modules: what is imported, unpickled and found by them."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from firesteel.common.output_tag import OutputTag
from firesteel.connectors.file_formats import file_split
from firesteel.connectors.file_formats.file_split import FileSourceSplit

import firesteel
from firesteel import moved_modules
from firesteel.common.time import Duration, Instant, Time
from firesteel.common.types import Row, RowKind
from firesteel.common.windows import TimeWindow
from firesteel.connectors.base import iterator_split, split_cursor
from firesteel.connectors.generators.nexmark import Auction, Bid, Person
from firesteel.connectors.postgres.cdc.change_record import ChangeRecord
from firesteel.formats.bad_records import BadRecord
from firesteel.moved_modules import MOVED, MovedModuleFinder
from firesteel.runtime.state.rocksdb.keys import encode_object

OLD = "firesteel.connectors.split_of_files"
VANISHED = "firesteel.vanished.files.split"
OLD_PACKAGE = "firesteel.old_base"
TABLE = {
    OLD: "firesteel.connectors.file_formats.file_split",
    VANISHED: "firesteel.connectors.file_formats.file_split",
    OLD_PACKAGE: "firesteel.connectors.base",
    f"{OLD_PACKAGE}.cursor": "firesteel.connectors.base.split_cursor",
}
SPLIT = FileSourceSplit("0", "orders.csv", 3, position=7)

Install = Callable[[Mapping[str, str]], None]


@pytest.fixture
def install() -> Iterator[Install]:
    """Lets old names of a table be imported; afterwards all is as before."""
    loaded = set(sys.modules)
    finders = list(sys.meta_path)
    yield lambda table: sys.meta_path.append(MovedModuleFinder(table))  # type: ignore[arg-type]
    sys.meta_path[:] = finders
    for name in set(sys.modules) - loaded:
        module = sys.modules[name]
        if isinstance(getattr(module.__spec__, "loader", None), MovedModuleFinder):
            _forget(name)


def _forget(name: str) -> None:
    sys.modules.pop(name, None)
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        vars(sys.modules[parent]).pop(child, None)


def _pickled_under(name: str, monkeypatch: pytest.MonkeyPatch, value: Any) -> bytes:
    """Pickles a value of a class as if the class were in the module of that name."""
    with monkeypatch.context() as patch:
        patch.setattr(type(value), "__module__", name)
        data = pickle.dumps(value, 5)
    _forget(name)
    assert name.encode() in data
    return data


@pytest.mark.parametrize("name", [OLD, VANISHED])
def test_an_old_name_gives_what_the_new_module_has(install: Install, name: str) -> None:
    install(TABLE)
    module = importlib.import_module(name)
    assert module.__name__ == name
    assert module.FileSourceSplit is FileSourceSplit
    assert module.FileSourceSplit is FileSourceSplit, "also when it was looked up before"
    assert module.CheckpointedPosition is file_split.CheckpointedPosition


def test_an_import_statement_takes_an_old_name(install: Install) -> None:
    install(TABLE)
    names: dict[str, Any] = {}
    exec(f"import {VANISHED}\nfrom {OLD} import FileSourceSplit as split", names)
    assert names["split"] is names["firesteel"].vanished.files.split.FileSourceSplit is FileSourceSplit


def test_what_neither_module_has_is_an_error(install: Install) -> None:
    install(TABLE)
    with pytest.raises(AttributeError, match=r"file_split.*'Gone'"):
        importlib.import_module(OLD).Gone


def test_a_name_outside_the_table_is_not_found(install: Install) -> None:
    install(TABLE)
    for name in ("firesteel.vanished.other", "firesteel.vanish", f"{OLD}.more", "no_such_module"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


@pytest.mark.parametrize("name", [OLD, VANISHED])
@pytest.mark.parametrize("loads", [pickle.loads, pickle._loads, cloudpickle.loads], ids=["C", "Python", "cloudpickle"])  # type: ignore[attr-defined]
def test_a_pickle_with_an_old_name_is_read(
    install: Install, monkeypatch: pytest.MonkeyPatch, name: str, loads: Callable[[bytes], Any]
) -> None:
    install(TABLE)
    data = _pickled_under(name, monkeypatch, SPLIT)
    found = loads(data)
    assert found == SPLIT
    assert type(found) is FileSourceSplit
    assert name.encode() not in pickle.dumps(found), "it is written under the new name"
    assert name.encode() not in cloudpickle.dumps(found)


def test_a_function_by_value_finds_modules_and_classes_by_old_names(install: Install) -> None:
    install(TABLE)
    module = importlib.import_module(OLD)
    by_module: dict[str, Any] = {"files": module, "__name__": "__main__"}
    exec("def make(path):\n    return files.FileSourceSplit('0', path)", by_module)
    data = cloudpickle.dumps(by_module["make"])
    assert OLD.encode() in data
    _forget(OLD)
    assert cloudpickle.loads(data)("a.csv") == FileSourceSplit("0", "a.csv")


def test_the_modules_of_a_package_that_moved_are_not_loaded_twice(install: Install) -> None:
    install(TABLE)
    package = importlib.import_module(OLD_PACKAGE)
    assert package.iterator_split is iterator_split
    assert importlib.import_module(f"{OLD_PACKAGE}.cursor").SplitCursor is split_cursor.SplitCursor
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{OLD_PACKAGE}.iterator_split")


def test_a_module_that_exists_is_not_shadowed(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_that_is_there.py").write_text("FOUND = 'itself'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    install({"module_that_is_there": "json"})
    try:
        assert importlib.import_module("module_that_is_there").FOUND == "itself"
    finally:
        _forget("module_that_is_there")


def test_a_stub_is_not_taken_for_the_file_of_the_new_module(install: Install) -> None:
    install(TABLE)
    assert not hasattr(importlib.import_module(OLD), "__file__")


def test_the_finder_is_installed_once_and_imports_nothing() -> None:
    code = """
import importlib, sys
import firesteel
importlib.reload(firesteel)
print(sorted(name for name in sys.modules if name.startswith("firesteel")))
print([type(finder).__name__ for finder in sys.meta_path].count("MovedModuleFinder"))
"""
    root = Path(firesteel.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['firesteel', 'firesteel.moved_modules']", "1"]
    assert moved_modules._finder in sys.meta_path


# ---- the table --------------------------------------------------------------------------------------


def _problems(table: Mapping[str, str]) -> Iterator[str]:
    root = Path(firesteel.__file__).parents[1]
    for old, new in table.items():
        if find_spec(new) is None or isinstance(find_spec(new).loader, MovedModuleFinder):  # type: ignore[union-attr]
            yield f"{new} does not exist"
        path = root.joinpath(*old.split("."))
        for each in (path, *path.parents):
            if each == root:
                break
            if each.with_suffix(".py").exists() or (each == path and (each / "__init__.py").exists()):
                yield f"{old} cannot be found: {each.relative_to(root)} exists"


def test_every_entry_of_the_table_can_be_found() -> None:
    assert list(_problems(MOVED)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("firesteel.gone", "firesteel.gone_too"),
        ("firesteel.common.time", "firesteel.common.windows"),
        ("firesteel.common", "firesteel.common.windows"),
        ("firesteel.common.time.clocks", "firesteel.common.time"),
    ],
)
def test_an_entry_that_cannot_be_found_is_noticed(old: str, new: str) -> None:
    assert len(list(_problems({old: new}))) == 1


# ---- what must not move -----------------------------------------------------------------------------


class _Place:
    """A map key of a class that has no canonical bytes."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and other.parts == self.parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.parts}"


def _of_script() -> Any:
    """An object of a class that no module has."""
    return type("OfScript", (_Place,), {"__module__": "__main__"})(1)


@pytest.mark.parametrize(
    ("key", "module"),
    [
        (Instant(1, 2), "firesteel.common.time"),
        (Duration.of_millis(1), "firesteel.common.time"),
        (Time.seconds(1), "firesteel.common.time"),
        (TimeWindow(0, 1 << 64), "firesteel.common.windows"),
        (_Place(TimeWindow(0, 1)), "firesteel.common.windows"),
        (_Place(Row(1)), "firesteel.common.types"),
        (_Place(Row(a=1)), "firesteel.common.types"),
        (_Place(Row.of_kind(RowKind.DELETE, 1)), "firesteel.common.types"),
        (_Place(RowKind.DELETE), "firesteel.common.types"),
        (_of_script(), "firesteel.runtime.state.rocksdb.classes"),
    ],
    ids=repr,
)
def test_keys_of_rows_have_the_same_module_names_for_good(key: Any, module: str) -> None:
    """RocksDB compares pickled map keys and namespaces as bytes: under another name their rows would not be found."""
    assert module.encode() in encode_object(key)
    assert module not in MOVED


@pytest.mark.parametrize(
    ("cls", "module"),
    [
        (OutputTag, "firesteel.common.output_tag"),
        (BadRecord, "firesteel.connectors.bad_records"),
        (Person, "firesteel.connectors.nexmark"),
        (Auction, "firesteel.connectors.nexmark"),
        (Bid, "firesteel.connectors.nexmark"),
        (ChangeRecord, "firesteel.connectors.postgres.change_record"),
    ],
)
def test_records_keep_the_name_under_which_they_are_stored(cls: type[Any], module: str) -> None:
    """A record may be a key, too."""
    assert module.encode() in pickle.dumps(cls)
    assert pickle.loads(pickle.dumps(cls)) is cls


def _modules_with_stored_names() -> list[str]:
    package = Path(firesteel.__file__).parent
    return [
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in sorted(package.rglob("*.py"))
        if "\n@stored_as(" in path.read_text()
    ]


@pytest.mark.parametrize("module", _modules_with_stored_names())
def test_a_class_with_a_stored_name_is_shipped_by_name(module: str) -> None:
    """In a process that has imported nothing else, as a user's program has: here, tests import old names."""
    code = f"""
import sys
import cloudpickle
import {module} as module
from firesteel.moved_modules import MOVED
kept = {{name: each for name, each in vars(module).items() if getattr(each, "__module__", None) in MOVED}}
sys.stdout.buffer.write(cloudpickle.dumps(kept))
"""
    root = Path(firesteel.__file__).parents[1]
    kept = pickle.loads(subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=True).stdout)
    assert kept
    assert all(each is getattr(importlib.import_module(module), name) for name, each in kept.items())
