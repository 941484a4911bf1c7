"""Composite types: rows, tuples, arrays, lists and maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import firesteel.types.logical as logical
from firesteel.common.types import Row, RowKind, values_by_name
from firesteel.types.type_information import BasicType, BasicTypeInfo, TypeInformation, mismatch

__all__ = [
    "BasicArrayTypeInfo",
    "ExternalTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "TupleTypeInfo",
]

_PRIMITIVE = frozenset(
    BasicTypeInfo(basic_type)
    for basic_type in (
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
        BasicType.CHAR,
    )
)


class _ArrayTypeInfo(TypeInformation):
    def __init__(self, element_type: TypeInformation):
        self._element_type = element_type

    def get_element_type(self) -> TypeInformation:
        """The type of the elements."""
        return self._element_type

    def to_logical(self) -> logical.LogicalType:
        """An array of the logical type of the elements."""
        return logical.ArrayType(self._element_type.to_logical(), declared_as=str(self))

    def _takes_none(self) -> bool:
        return False

    def _expected(self) -> str:
        return "a list"

    def _validate(self, value: Any) -> str | None:
        if isinstance(value, (str, Mapping, Row)) or not isinstance(value, Iterable):
            return mismatch(self, self._expected(), value)
        if isinstance(value, (bytes, bytearray)):
            fits = self._element_type == BasicTypeInfo.BYTE_TYPE_INFO()
            return None if fits else mismatch(self, self._expected(), value)
        return _first_problem(("Element", i, self._element_type, element) for i, element in enumerate(value))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._element_type == other._element_type

    def __hash__(self) -> int:
        return hash((type(self), self._element_type))

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self._element_type}>"


class PrimitiveArrayTypeInfo(_ArrayTypeInfo):
    """An array of numbers, booleans or characters without None; one of bytes may be ``bytes``."""

    def __init__(self, element_type: TypeInformation):
        if element_type not in _PRIMITIVE:
            raise TypeError(f"A primitive array cannot have elements of type {element_type}")
        super().__init__(element_type)

    def to_logical(self) -> logical.LogicalType:
        """BYTES, or an array without null."""
        element = self._element_type.to_logical()
        if element.root is logical.LogicalTypeRoot.TINYINT:
            return logical.VarBinaryType(declared_as=str(self))
        return logical.ArrayType(element.not_null(), declared_as=str(self))


class BasicArrayTypeInfo(_ArrayTypeInfo):
    """An array of numbers, booleans, characters or strings, in which None may occur."""

    def __init__(self, element_type: TypeInformation):
        if element_type not in _PRIMITIVE and element_type != BasicTypeInfo.STRING_TYPE_INFO():
            raise TypeError(f"A basic array cannot have elements of type {element_type}")
        super().__init__(element_type)


class ObjectArrayTypeInfo(_ArrayTypeInfo):
    """An array of anything, in which None may occur."""


class _FieldsTypeInfo(TypeInformation):
    """What rows and tuples share: fields of given types, of which some may need conversion."""

    def __init__(self, field_types: Sequence[TypeInformation]):
        self._field_types = list(field_types)
        self._conversions = [field.need_conversion() for field in self._field_types]
        self._convert_any = any(self._conversions)

    def get_field_types(self) -> list[TypeInformation]:
        """The fields' types, in order."""
        return self._field_types

    def need_conversion(self) -> bool:
        """Always."""
        return True

    def _to_internal_fields(self, values: Iterable[Any]) -> tuple[Any, ...]:
        if not self._convert_any:
            return tuple(values)
        fields = zip(self._field_types, self._conversions, values, strict=False)
        return tuple(field.to_internal_type(value) if convert else value for field, convert, value in fields)

    def from_internal_type(self, obj: Any) -> Any:
        """A tuple of the fields' Python objects; what is a tuple or list is so already."""
        if obj is None or isinstance(obj, (tuple, list)):
            return obj
        if not self._convert_any:
            return tuple(obj)
        fields = zip(self._field_types, self._conversions, obj, strict=False)
        return tuple(field.from_internal_type(value) if convert else value for field, convert, value in fields)

    def _takes_none(self) -> bool:
        return False

    def _validate_fields(self, values: Sequence[Any], names: Sequence[Any]) -> str | None:
        if len(values) != len(self._field_types):
            expected = f"{len(self._field_types)} fields"
            return mismatch(self, f"{expected} but the value has {len(values)}", values)
        return _first_problem(
            ("Field", name, field_type, value)
            for name, field_type, value in zip(names, self._field_types, values, strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._field_types == other._field_types

    def __hash__(self) -> int:
        return hash((type(self), *self._field_types))


class RowTypeInfo(_FieldsTypeInfo):
    """A row; equal to any other with the same field types, whatever the names."""

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None):
        super().__init__(field_types)
        if field_names is not None and len(field_names) != len(self._field_types):
            raise ValueError(f"{len(field_names)} field names for {len(self._field_types)} field types")
        if field_names is not None and len(set(field_names)) != len(field_names):
            raise ValueError(f"Field names are not unique: {list(field_names)}")
        self._named = bool(field_names)
        self._field_names = list(field_names) if field_names else [f"f{i}" for i in range(len(field_types))]

    def get_field_names(self) -> list[str]:
        """The fields' names, in order: f0, f1, … if they were given none."""
        return self._field_names

    def get_field_index(self, field_name: str) -> int:
        """The position of a field; ValueError if there is none of that name."""
        return self._field_names.index(field_name)

    def to_logical(self) -> logical.RowType:
        """The logical type of the rows."""
        types = [field.to_logical() for field in self._field_types]
        return logical.RowType.of(self._field_names, types, is_positional=not self._named, declared_as=str(self))

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """The row kind's number and the fields, from a Row, tuple, list, dict or object with attributes."""
        if obj is None:
            return None
        kind = obj.get_row_kind() if isinstance(obj, Row) else RowKind.INSERT
        values = values_by_name(obj, self._field_names)
        if values is None:
            raise ValueError(mismatch(self, self._expected(), obj))
        return (kind.value, *self._to_internal_fields(values))

    def _expected(self) -> str:
        return "a Row, tuple, list or dict"

    def _validate(self, value: Any) -> str | None:
        try:
            values = values_by_name(value, self._field_names)
        except ValueError as error:
            return f"{self}: {error}."
        if values is None:
            return mismatch(self, self._expected(), value)
        return self._validate_fields(values, self._field_names)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        fields = [str(field) for field in self._field_types]
        if self._named:
            fields = [f"{name}: {field}" for name, field in zip(self._field_names, fields, strict=True)]
        return f"RowTypeInfo({', '.join(fields)})"


class TupleTypeInfo(_FieldsTypeInfo):
    """A tuple with fields of given types."""

    def to_logical(self) -> logical.StructuredType:
        """A structured type with the fields f0, f1, …"""
        return logical.StructuredType.of([field.to_logical() for field in self._field_types], declared_as=str(self))

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """A tuple of the fields, from a tuple, list or Row."""
        if obj is None:
            return None
        if not isinstance(obj, (list, tuple, Row)):
            raise ValueError(mismatch(self, self._expected(), obj))  # noqa: TRY004 - as PyFlink does
        return self._to_internal_fields(obj)

    def _expected(self) -> str:
        return "a tuple"

    def _validate(self, value: Any) -> str | None:
        if not isinstance(value, (list, tuple, Row)):
            return mismatch(self, self._expected(), value)
        return self._validate_fields(list(value) if isinstance(value, Row) else value, range(len(value)))

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self._field_types))})"


class ListTypeInfo(TypeInformation):
    """A list with elements of one type."""

    def __init__(self, element_type: TypeInformation):
        self.elem_type = element_type

    def get_element_type(self) -> TypeInformation:
        """The type of the elements."""
        return self.elem_type

    def to_logical(self) -> logical.LogicalType:
        """An array of the logical type of the elements."""
        return logical.ArrayType(self.elem_type.to_logical(), declared_as=str(self))

    def _validate(self, value: Any) -> str | None:
        if not isinstance(value, (list, tuple)):
            return mismatch(self, "a list", value)
        return _first_problem(("Element", i, self.elem_type, element) for i, element in enumerate(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListTypeInfo) and self.elem_type == other.elem_type

    def __hash__(self) -> int:
        return hash((ListTypeInfo, self.elem_type))

    def __repr__(self) -> str:
        return f"ListTypeInfo<{self.elem_type}>"


class MapTypeInfo(TypeInformation):
    """A dict with keys of one type and values of another."""

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation):
        self._key_type_info = key_type_info
        self._value_type_info = value_type_info

    def get_key_type(self) -> TypeInformation:
        """The type of the keys."""
        return self._key_type_info

    def get_value_type(self) -> TypeInformation:
        """The type of the values."""
        return self._value_type_info

    def to_logical(self) -> logical.LogicalType:
        """A map of the logical types of keys and values."""
        key, value = self._key_type_info.to_logical(), self._value_type_info.to_logical()
        return logical.MapType(key, value, declared_as=str(self))

    def _validate(self, value: Any) -> str | None:
        if not isinstance(value, Mapping):
            return mismatch(self, "a dict", value)
        problem = _first_problem(("Key", key, self._key_type_info, key) for key in value)
        return problem or _first_problem(
            ("The value of", key, self._value_type_info, item) for key, item in value.items()
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MapTypeInfo)
            and self._key_type_info == other._key_type_info
            and self._value_type_info == other._value_type_info
        )

    def __hash__(self) -> int:
        return hash((MapTypeInfo, self._key_type_info, self._value_type_info))

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self._key_type_info}, {self._value_type_info}>"


class ExternalTypeInfo(TypeInformation):
    """A type as the Table API hands it out."""

    def __init__(self, type_info: TypeInformation):
        self._type_info = type_info

    def to_logical(self) -> logical.LogicalType:
        """The logical type of the type inside."""
        return self._type_info.to_logical()

    def validate(self, value: Any) -> str | None:
        """What the type inside says."""
        return self._type_info.validate(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExternalTypeInfo) and self._type_info == other._type_info

    def __hash__(self) -> int:
        return hash((ExternalTypeInfo, self._type_info))

    def __repr__(self) -> str:
        return f"ExternalTypeInfo<{self._type_info}>"


def _first_problem(parts: Iterable[tuple[str, Any, TypeInformation, Any]]) -> str | None:
    for label, name, type_info, value in parts:
        # None means "no value" in rows, tuples and maps, for any type of the part
        problem = None if value is None else type_info.validate(value)
        if problem is not None:
            return f"{label} {name}: {problem}"
    return None
