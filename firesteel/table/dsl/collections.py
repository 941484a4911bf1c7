"""Functions of arrays, maps and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.dsl.base import ExpressionBase, node_of

if TYPE_CHECKING:
    from firesteel.table.dsl.expression import Expression

__all__ = ["CollectionExpressions"]


class CollectionExpressions(ExpressionBase[Any]):
    """Functions of arrays, maps and rows."""

    def get(self, name_or_index: Any) -> Expression[Any]:
        """A field of a row, by its name or its index, which begins at 0."""
        return self._of(_field(self._copy(), name_or_index))

    @property
    def flatten(self) -> Expression[Any]:
        """All fields of a row as columns of their own, in ``select``."""
        return self._call("$FLATTEN")

    def at(self, index: Any) -> Expression[Any]:
        """An element of an array by its index, which begins at 1, or the value of a key of a map."""
        return self._of(exp.Bracket(this=self._copy(), expressions=[node_of(index)]))

    @property
    def cardinality(self) -> Expression[Any]:
        """The number of elements."""
        return self._call("CARDINALITY")

    @property
    def element(self) -> Expression[Any]:
        """The only element of an array."""
        return self._call("ELEMENT")

    def array_append(self, addition: Any) -> Expression[Any]:
        """The array with an element at its end."""
        return self._call("ARRAY_APPEND", addition)

    def array_contains(self, needle: Any) -> Expression[Any]:
        """Whether the array has an element."""
        return self._call("ARRAY_CONTAINS", needle)

    def array_distinct(self) -> Expression[Any]:
        """The array without elements that are there before."""
        return self._call("ARRAY_DISTINCT")

    def array_position(self, needle: Any) -> Expression[Any]:
        """The index of an element, which begins at 1; 0 if it is not there."""
        return self._call("ARRAY_POSITION", needle)

    def array_prepend(self, addition: Any) -> Expression[Any]:
        """The array with an element at its beginning."""
        return self._call("ARRAY_PREPEND", addition)

    def array_remove(self, needle: Any) -> Expression[Any]:
        """The array without an element."""
        return self._call("ARRAY_REMOVE", needle)

    def array_reverse(self) -> Expression[Any]:
        """The elements in the opposite order."""
        return self._call("ARRAY_REVERSE")

    def array_slice(self, start_offset: Any, end_offset: Any = None) -> Expression[Any]:
        """The elements between two indexes, both included."""
        return self._call("ARRAY_SLICE", start_offset, end_offset)

    def array_sort(self, ascending_order: Any = None, null_first: Any = None) -> Expression[Any]:
        """The elements in order."""
        return self._call("ARRAY_SORT", ascending_order, null_first)

    def array_union(self, array: Any) -> Expression[Any]:
        """The elements of both arrays, each once."""
        return self._call("ARRAY_UNION", array)

    def array_concat(self, *arrays: Any) -> Expression[Any]:
        """The elements of this array, followed by those of others."""
        return self._call("ARRAY_CONCAT", *arrays)

    def array_max(self) -> Expression[Any]:
        """The largest element."""
        return self._call("ARRAY_MAX")

    def array_join(self, delimiter: Any, null_replacement: Any = None) -> Expression[Any]:
        """The elements as one text."""
        return self._call("ARRAY_JOIN", delimiter, null_replacement)

    def array_min(self) -> Expression[Any]:
        """The smallest element."""
        return self._call("ARRAY_MIN")

    def array_except(self, array: Any) -> Expression[Any]:
        """The elements that another array does not have."""
        return self._call("ARRAY_EXCEPT", array)

    def array_intersect(self, array: Any) -> Expression[Any]:
        """The elements that another array has as well."""
        return self._call("ARRAY_INTERSECT", array)

    def split(self, delimiter: Any) -> Expression[Any]:
        """The parts of a string between delimiters."""
        return self._call("SPLIT", delimiter)

    @property
    def map_keys(self) -> Expression[Any]:
        """The keys of a map."""
        return self._call("MAP_KEYS")

    def map_union(self, *maps: Any) -> Expression[Any]:
        """The entries of this map and of others; later ones take precedence."""
        return self._call("MAP_UNION", *maps)

    @property
    def map_values(self) -> Expression[Any]:
        """The values of a map."""
        return self._call("MAP_VALUES")

    @property
    def map_entries(self) -> Expression[Any]:
        """The entries of a map, as rows."""
        return self._call("MAP_ENTRIES")

    def object_update(self, *kv: Any) -> Expression[Any]:
        """The object with other values of fields."""
        return self._call("OBJECT_UPDATE", *kv)

    def bitmap_and(self, bitmap2: Any) -> Expression[Any]:
        """The values that are in both bitmaps."""
        return self._call("BITMAP_AND", bitmap2)

    def bitmap_andnot(self, bitmap2: Any) -> Expression[Any]:
        """The values that the other bitmap does not have."""
        return self._call("BITMAP_ANDNOT", bitmap2)

    def bitmap_build(self) -> Expression[Any]:
        """The bitmap of an array."""
        return self._call("BITMAP_BUILD")

    def bitmap_cardinality(self) -> Expression[Any]:
        """The number of values."""
        return self._call("BITMAP_CARDINALITY")

    def bitmap_from_bytes(self) -> Expression[Any]:
        """The bitmap that bytes hold."""
        return self._call("BITMAP_FROM_BYTES")

    def bitmap_or(self, bitmap2: Any) -> Expression[Any]:
        """The values that are in one of the bitmaps."""
        return self._call("BITMAP_OR", bitmap2)

    def bitmap_to_array(self) -> Expression[Any]:
        """The values as an array."""
        return self._call("BITMAP_TO_ARRAY")

    def bitmap_to_bytes(self) -> Expression[Any]:
        """The bitmap as bytes."""
        return self._call("BITMAP_TO_BYTES")

    def bitmap_to_string(self) -> Expression[Any]:
        """The values as text."""
        return self._call("BITMAP_TO_STRING")

    def bitmap_xor(self, bitmap2: Any) -> Expression[Any]:
        """The values that are in one of the bitmaps only."""
        return self._call("BITMAP_XOR", bitmap2)


def _field(row: exp.Expression, name_or_index: str | int) -> exp.Expression:
    if isinstance(name_or_index, str):
        return exp.Dot(this=row, expression=exp.to_identifier(name_or_index, quoted=True))
    return exp.Bracket(this=row, expressions=[exp.Literal.number(name_or_index + 1)])
