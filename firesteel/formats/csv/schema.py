"""CSV schema: columns, separators, quotes and escapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types, from_logical
from firesteel.formats.compiled_schema import require_row_type
from firesteel.types.logical import LogicalType, LogicalTypeRoot, RowType
from firesteel.types.text import check_text_type

__all__ = ["CsvSchema", "CsvSchemaBuilder"]

ColumnType = TypeInformation | LogicalType
ARRAY_SEPARATOR = ";"
_REFUSED = (LogicalTypeRoot.RAW, LogicalTypeRoot.MAP)
_NESTED = (
    LogicalTypeRoot.ROW,
    LogicalTypeRoot.ARRAY,
    LogicalTypeRoot.BINARY,
    LogicalTypeRoot.VARBINARY,
    *_REFUSED,
)


@dataclass(frozen=True)
class CsvSchema:
    """The columns of CSV lines and how the lines are written; made with ``CsvSchema.builder()`` or ``of``."""

    row_type: RowTypeInfo
    """The names and types of the columns."""
    column_separator: str = ","
    quote_char: str | None = '"'
    escape_char: str | None = None
    null_value: str | None = None
    """The text that stands for None; without one nothing does when reading, and an empty column when writing."""
    line_separator: str = "\n"
    allow_comments: bool = False
    """Whether lines that begin with # are passed over."""
    array_separators: tuple[str, ...] = ()
    """Of each column that is an array or a row; one for all if there is only one."""
    use_header: bool = False
    """Whether the first line names the columns."""
    strict_headers: bool = False
    """Whether that line must name the columns of the schema, in order."""
    skip_first_data_row: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """A builder."""
        return CsvSchemaBuilder()

    @staticmethod
    def of(row_type: TypeInformation, **settings: Any) -> CsvSchema:
        """A schema with the columns of a row type."""
        return CsvSchema(require_row_type(row_type, "A CSV schema"), **settings)

    def __post_init__(self) -> None:
        for column in self.logical_type.fields:
            _check_type(column.name, column.type)
        for setting in ("column_separator", "quote_char", "escape_char"):
            value = getattr(self, setting)
            if value is not None and (not isinstance(value, str) or len(value) != 1):
                raise InvalidProgramError(f"The {setting.replace('_', ' ')} of CSV is one character, got {value!r}.")
        if self.escape_char is not None and self.escape_char == self.quote_char:
            # a quote is written twice within quotes in any case
            object.__setattr__(self, "escape_char", None)
        if self.column_separator in (self.quote_char, self.escape_char):
            raise InvalidProgramError(f"{self.column_separator!r} separates columns of CSV; it cannot quote or escape.")
        if self.line_separator not in ("\n", "\r", "\r\n", ""):
            raise InvalidProgramError(
                f"A line of CSV cannot end with {self.line_separator!r}.", hint=r"Use \n, \r, \r\n or nothing."
            )

    @property
    def logical_type(self) -> RowType:
        """The row type, for the functions that read and write lines."""
        return self.row_type.to_logical()

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return self.row_type.get_field_names()

    def array_separator(self, index: int) -> str:
        """What separates the elements within that column."""
        separators = self.array_separators or (ARRAY_SEPARATOR,)
        return separators[index] if len(separators) > 1 else separators[0]

    def size(self) -> int:
        """How many columns there are."""
        return len(self.column_names)

    def __len__(self) -> int:
        return self.size()


class CsvSchemaBuilder:
    """Builds a :class:`CsvSchema`, column by column.

    The types of columns are given as ``DataTypes.…``, as in PyFlink, or as ``Types.…``.
    """

    def __init__(self) -> None:
        self._columns: list[tuple[str, TypeInformation, str | None]] = []
        self._array_separator = ARRAY_SEPARATOR
        self._settings: dict[str, Any] = {}

    def build(self) -> CsvSchema:
        """The schema."""
        if not self._columns:
            raise InvalidProgramError("A CSV schema needs columns.", hint="Add them with add_string_column and such.")
        names = [name for name, _, _ in self._columns]
        if len(set(names)) < len(names):
            raise InvalidProgramError(f"The names of CSV columns are not unique: {names}.")
        separators = [self._array_separator if given is None else given for _, _, given in self._columns]
        row_type = Types.ROW_NAMED(names, [type_info for _, type_info, _ in self._columns])
        # A lone column's separator would be taken for that of all, which for one column is the same.
        return CsvSchema(row_type, array_separators=tuple(separators), **self._settings)

    def add_array_column(
        self, name: str, separator: str = ARRAY_SEPARATOR, element_type: ColumnType | None = None
    ) -> CsvSchemaBuilder:
        """Adds a column of arrays, by default of strings."""
        return self._add(name, Types.OBJECT_ARRAY(_type_info(element_type or Types.STRING())), separator)

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Adds a column of booleans."""
        return self._add(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: ColumnType | None = None) -> CsvSchemaBuilder:
        """Adds a column of numbers, by default integers of 64 bits."""
        return self._add(name, _type_info(number_type or Types.LONG()))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Adds a column of strings."""
        return self._add(name, Types.STRING())

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Adds all columns of another schema."""
        types = schema.row_type.get_field_types()
        for i, (name, type_info) in enumerate(zip(schema.column_names, types, strict=True)):
            self._add(name, type_info, schema.array_separator(i))
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Removes all columns."""
        self._columns.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Skips lines that begin with #."""
        return self._set(allow_comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Not supported: a row has a fixed number of columns."""
        raise InvalidProgramError(f"Columns beyond those of the schema cannot be kept as '{name}': rows have no place.")

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Does not split arrays: each has one element."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Does not split the arrays of a column."""
        name, type_info, _ = self._columns[index]
        self._columns[index] = (name, type_info, "")
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Sets the separator of array elements, for columns without their own."""
        self._array_separator = separator
        return self

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Sets the separator of columns. The default is a comma."""
        return self._set(column_separator=char)

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Disables escaping, the default."""
        return self._set(escape_char=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Sets the escape character."""
        return self._set(escape_char=char)

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """Sets the end of a line that is written. All usual line ends are read."""
        return self._set(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Sets the text that is read and written for None."""
        return self._set(null_value=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Disables quotes."""
        return self._set(quote_char=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Sets the quote character. The default is ``"``."""
        return self._set(quote_char=char)

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Skips the first line of a file, after the header if there is one."""
        return self._set(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Requires that the header names the columns of the schema, in order."""
        return self._set(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Reads the first line of a file as a header, and writes one."""
        return self._set(use_header=use)

    def size(self) -> int:
        """Returns the number of columns added so far."""
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    def _add(self, name: str, type_info: TypeInformation, separator: str | None = None) -> CsvSchemaBuilder:
        self._columns.append((name, type_info, separator))
        return self

    def _set(self, **settings: Any) -> CsvSchemaBuilder:
        self._settings.update(settings)
        replace(CsvSchema(Types.ROW([])), **settings)  # refuses a wrong setting where it is made
        return self


def _type_info(type_: ColumnType) -> TypeInformation:
    return from_logical(type_) if isinstance(type_, LogicalType) else type_


def _check_type(name: str, type_: LogicalType) -> None:
    check_text_type(type_, name, "CSV")
    if type_.root in _REFUSED:
        raise InvalidProgramError(f"CSV cannot hold column '{name}' of type {type_}.")
    for part in type_.children():
        check_text_type(part, name, "CSV")
        if part.root in _NESTED:
            raise InvalidProgramError(
                f"CSV cannot hold column '{name}' of type {type_}: only simple types can be within a column."
            )
