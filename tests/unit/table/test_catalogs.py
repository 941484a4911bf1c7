"""Catalogs and what a session finds in them; the messages are those of Flink 2.3."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from firesteel.table import DataTypes
from firesteel.table.catalog import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogFunction,
    CatalogModel,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
    GenericInMemoryCatalog,
    ObjectIdentifier,
    ObjectPath,
)
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.manager import CatalogManager
from firesteel.table.catalog.objects import TableKind
from firesteel.table.schema import Schema

SCHEMA = Schema.new_builder().column("a", DataTypes.INT()).column("b", DataTypes.STRING()).build()
TABLE = CatalogBaseTable.create_table(SCHEMA, ["b"], {"connector": "x"}, "hello")
VIEW = CatalogBaseTable.create_view("q", "expanded q", SCHEMA, {})
DATABASE = CatalogDatabase.create_instance({"p": "1"}, "cc")
FUNCTION = CatalogFunction.create_instance("my.f")
MODEL = CatalogModel.create_model(SCHEMA, SCHEMA, {"provider": "x"})
PARTITION = CatalogPartition.create_instance({"k": "v"}, "pc")
SPEC = CatalogPartitionSpec({"b": "1"})
OTHER = CatalogPartitionSpec({"b": "2"})
WRONG_COLUMNS = (
    "PartitionSpec CatalogPartitionSpec{{x=1}} does not match partition keys [b] "
    "of table d1.t in catalog default_catalog."
)
T, V, NONE = ObjectPath("d1", "t"), ObjectPath("d1", "v"), ObjectPath("d1", "nope")


@pytest.fixture
def catalog() -> GenericInMemoryCatalog:
    """A catalog with a table, a view, a partition, a function and a model."""
    catalog = GenericInMemoryCatalog("default_catalog", "default_database")
    catalog.create_database("d1", DATABASE, False)
    catalog.create_table(T, TABLE, False)
    catalog.create_table(V, VIEW, False)
    catalog.create_partition(T, SPEC, PARTITION, False)
    catalog.create_function(ObjectPath("d1", "F"), FUNCTION, False)
    catalog.create_model(ObjectPath("d1", "m"), MODEL, False)
    return catalog


REFUSED: list[tuple[str, Callable[[GenericInMemoryCatalog], object], str]] = [
    ("database", lambda c: c.get_database("nope"), "Database nope does not exist in Catalog default_catalog."),
    (
        "database twice",
        lambda c: c.create_database("d1", DATABASE, False),
        "Database d1 already exists in Catalog default_catalog.",
    ),
    (
        "drop database",
        lambda c: c.drop_database("nope", False),
        "Database nope does not exist in Catalog default_catalog.",
    ),
    (
        "alter database",
        lambda c: c.alter_database("nope", DATABASE, False),
        "Database nope does not exist in Catalog default_catalog.",
    ),
    ("not empty", lambda c: c.drop_database("d1", False), "Database d1 in catalog default_catalog is not empty."),
    (
        "table twice",
        lambda c: c.create_table(T, TABLE, False),
        "Table (or view) d1.t already exists in Catalog default_catalog.",
    ),
    (
        "table of no database",
        lambda c: c.create_table(ObjectPath("nope", "t"), TABLE, False),
        "Database nope does not exist in Catalog default_catalog.",
    ),
    ("tables", lambda c: c.list_tables("nope"), "Database nope does not exist in Catalog default_catalog."),
    ("views", lambda c: c.list_views("nope"), "Database nope does not exist in Catalog default_catalog."),
    ("table", lambda c: c.get_table(NONE), "Table (or view) d1.nope does not exist in Catalog default_catalog."),
    ("drop", lambda c: c.drop_table(NONE, False), "Table (or view) d1.nope does not exist in Catalog default_catalog."),
    (
        "rename",
        lambda c: c.rename_table(NONE, "x", False),
        "Table (or view) d1.nope does not exist in Catalog default_catalog.",
    ),
    (
        "rename to another",
        lambda c: c.rename_table(T, "v", False),
        "Table (or view) d1.v already exists in Catalog default_catalog.",
    ),
    (
        "alter kind",
        lambda c: c.alter_table(T, VIEW, False),
        "Table types don't match. Existing table is 'TABLE' and new table is 'VIEW'.",
    ),
    (
        "alter",
        lambda c: c.alter_table(NONE, TABLE, False),
        "Table (or view) d1.nope does not exist in Catalog default_catalog.",
    ),
    ("view's partitions", lambda c: c.list_partitions(V), "Table d1.v in catalog default_catalog is not partitioned."),
    (
        "partition twice",
        lambda c: c.create_partition(T, SPEC, PARTITION, False),
        "Partition CatalogPartitionSpec{{b=1}} of table d1.t in catalog default_catalog already exists.",
    ),
    (
        "partition columns",
        lambda c: c.create_partition(T, CatalogPartitionSpec({"x": "1"}), PARTITION, False),
        WRONG_COLUMNS,
    ),
    *(
        (
            name,
            call,
            "Partition CatalogPartitionSpec{{b=2}} of table d1.t in catalog default_catalog does not exist.",
        )
        for name, call in (
            ("partition", lambda c: c.get_partition(T, OTHER)),
            ("drop partition", lambda c: c.drop_partition(T, OTHER, False)),
            ("alter partition", lambda c: c.alter_partition(T, OTHER, PARTITION, False)),
        )
    ),
    (
        "function twice",
        lambda c: c.create_function(ObjectPath("d1", "f"), FUNCTION, False),
        "Function d1.f already exists in Catalog default_catalog.",
    ),
    *(
        (name, call, "Function d1.g does not exist in Catalog default_catalog.")
        for name, call in (
            ("function", lambda c: c.get_function(ObjectPath("d1", "g"))),
            ("drop function", lambda c: c.drop_function(ObjectPath("d1", "g"), False)),
            ("alter function", lambda c: c.alter_function(ObjectPath("d1", "g"), FUNCTION, False)),
        )
    ),
    (
        "model twice",
        lambda c: c.create_model(ObjectPath("d1", "m"), MODEL, False),
        "Model d1.m already exists in Catalog default_catalog.",
    ),
    *(
        (name, call, "Model '`default_catalog`.`d1`.`nope`' does not exist.")
        for name, call in (
            ("model", lambda c: c.get_model(NONE)),
            ("drop model", lambda c: c.drop_model(NONE, False)),
            ("rename model", lambda c: c.rename_model(NONE, "x", False)),
            ("alter model", lambda c: c.alter_model(NONE, MODEL, False)),
        )
    ),
    (
        "statistics",
        lambda c: c.get_table_statistics(NONE),
        "Table (or view) d1.nope does not exist in Catalog default_catalog.",
    ),
]


@pytest.mark.parametrize(("call", "message"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
def test_refusal_has_flinks_message(
    catalog: GenericInMemoryCatalog, call: Callable[[GenericInMemoryCatalog], object], message: str
) -> None:
    with pytest.raises(CatalogException) as refused:
        call(catalog)
    assert refused.value.message == message


def test_catalog_lists_what_it_has(catalog: GenericInMemoryCatalog) -> None:
    assert catalog.list_databases() == ["default_database", "d1"]
    assert catalog.list_tables("d1") == ["t", "v"]
    assert catalog.list_views("d1") == ["v"]
    assert catalog.list_functions("d1") == ["f"]
    assert catalog.list_models("d1") == ["m"]
    assert catalog.list_partitions(T) == catalog.list_partitions(T, SPEC) == [SPEC]
    assert catalog.list_partitions(T, OTHER) == []
    assert catalog.get_function(ObjectPath("d1", "f")) is FUNCTION
    assert (TABLE.get_description(), TABLE.get_detailed_description()) == ("hello", None)
    assert (VIEW.get_description(), VIEW.get_detailed_description()) == ("", "This is a catalog view implementation")


def test_flags_make_refusals_silent(catalog: GenericInMemoryCatalog) -> None:
    catalog.create_database("d1", DATABASE, True)
    catalog.create_table(T, VIEW, True)
    catalog.drop_table(NONE, True)
    catalog.rename_table(NONE, "x", True)
    catalog.drop_partition(T, OTHER, True)
    catalog.drop_database("nope", True)
    assert catalog.get_table(T) is TABLE


def test_renamed_table_keeps_its_partitions_and_statistics(catalog: GenericInMemoryCatalog) -> None:
    catalog.alter_table_statistics(T, CatalogTableStatistics(row_count=7), False)
    catalog.rename_table(T, "u", False)
    new = ObjectPath("d1", "u")
    assert not catalog.table_exists(T)
    assert catalog.list_partitions(new) == [SPEC]
    assert catalog.get_table_statistics(new).get_row_count() == 7
    assert catalog.get_table_statistics(V).get_row_count() == -1


def test_cascade_drops_what_is_in_a_database(catalog: GenericInMemoryCatalog) -> None:
    catalog.drop_database("d1", False, cascade=True)
    catalog.create_database("d1", DATABASE, False)
    assert catalog.list_tables("d1") == catalog.list_functions("d1") == catalog.list_models("d1") == []


def test_paths_and_identifiers() -> None:
    assert ObjectPath("a", "b").compare_to(ObjectPath("a", "c")) == -1
    assert str(ObjectPath.from_string("x.y")) == "x.y"
    with pytest.raises(ValueError, match="Cannot get split 'x'"):
        ObjectPath.from_string("x")
    with pytest.raises(ValueError, match="cannot be null or empty"):
        ObjectPath("", "b")
    name = ObjectIdentifier.of("c", "d", "o`x")
    assert (str(name), name.as_summary_string()) == ("`c`.`d`.`o``x`", "c.d.o`x")


class TestManager:
    """The session's view of its catalogs."""

    def test_names_are_completed(self) -> None:
        manager = CatalogManager()
        assert str(manager.qualify(["t"])) == "`default_catalog`.`default_database`.`t`"
        assert str(manager.qualify(["d", "t"])) == "`default_catalog`.`d`.`t`"
        assert str(manager.qualify(["c", "d", "t"])) == "`c`.`d`.`t`"

    def test_another_catalog_brings_its_default_database(self) -> None:
        manager = CatalogManager()
        manager.register_catalog("c2", GenericInMemoryCatalog("c2"))
        assert manager.list_catalogs() == ["c2", "default_catalog"]
        manager.set_current_catalog("c2")
        assert manager.current_database == "default"
        with pytest.raises(CatalogException, match="Cannot drop a catalog which is currently in use"):
            manager.unregister_catalog("c2", False)
        manager.set_current_catalog("default_catalog")
        manager.unregister_catalog("c2", False)
        with pytest.raises(CatalogException, match="Catalog c2 does not exist"):
            manager.unregister_catalog("c2", False)

    def test_temporary_table_hides_the_other_until_it_is_dropped(self) -> None:
        manager = CatalogManager()
        name = manager.qualify(["x"])
        manager.create_table(name, TABLE)
        manager.create_table(name, TABLE.with_options({"connector": "temporary"}), temporary=True)
        assert manager.get_table(name).table.get_options() == {"connector": "temporary"}
        assert manager.list_tables("default_catalog", "default_database") == ["x"]
        with pytest.raises(CatalogException) as refused:
            manager.drop_table(name, TableKind.TABLE)
        assert refused.value.message == (
            "Temporary table with identifier '`default_catalog`.`default_database`.`x`' exists. "
            "Drop it first before removing the permanent table."
        )
        manager.drop_table(name, TableKind.TABLE, temporary=True)
        assert manager.get_table(name).table is TABLE
        with pytest.raises(CatalogException, match="Temporary table or view with identifier"):
            manager.drop_table(name, TableKind.TABLE, temporary=True)
        with pytest.raises(CatalogException, match=r"View with identifier '\S*\.x' does not exist"):
            manager.drop_table(name, TableKind.VIEW)
        manager.drop_table(name, TableKind.TABLE)
        with pytest.raises(CatalogException, match=r"Table with identifier '\S*\.x' does not exist"):
            manager.drop_table(name, TableKind.TABLE)

    def test_temporary_table_needs_no_database(self) -> None:
        manager = CatalogManager()
        name = manager.qualify(["elsewhere", "x"])
        manager.create_table(name, TABLE, temporary=True)
        assert manager.get_table(name).is_temporary
        assert manager.list_tables("default_catalog", "elsewhere", TableKind.VIEW) == []

    def test_missing_names_come_with_the_nearest(self) -> None:
        manager = CatalogManager()
        manager.create_table(manager.qualify(["orders"]), TABLE)
        with pytest.raises(CatalogException, match="The nearest table is 'orders'"):
            manager.get_table(manager.qualify(["order"]))
        with pytest.raises(CatalogException, match="The nearest database is 'default_database'"):
            manager.set_current_database("default_databas")
        with pytest.raises(CatalogException, match=r"A catalog with name \[nope\] does not exist"):
            manager.set_current_catalog("nope")
        with pytest.raises(CatalogException, match="Database elsewhere does not exist"):
            manager.get_table(manager.qualify(["elsewhere", "orders"]))

    def test_current_database_stays(self) -> None:
        manager = CatalogManager()
        with pytest.raises(CatalogException, match="Cannot drop a database which is currently in use"):
            manager.drop_database("default_catalog", "default_database", False, cascade=True)
