"""Functions of strings. Positions and lengths count code points."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import CHARACTER, INTEGER, STRING_OR_BINARY, Parameter, mismatch, signature
from firesteel.table.inference.families import is_character
from firesteel.table.values.java_units import java_units
from firesteel.types import logical as t
from firesteel.types.internal import to_column
from firesteel.types.logical import MAX_LENGTH, LogicalType

__all__ = ["FUNCTIONS"]

_STRING = t.VarCharType()
_INT = t.IntType()
_CODE = Parameter("<CHARACTER> or <INTEGER>", lambda type_: CHARACTER.accepts(type_) or INTEGER.accepts(type_), _STRING)


def _define(
    name: str, sign: Signature, row: Any, vector: Any = None, spark: Any = None, **options: Any
) -> FunctionDefinition:
    return FunctionDefinition(name, sign, row=row, vector=vector, spark=spark, family="string", **options)


def _same(arguments: Sequence[Expression]) -> LogicalType:
    return arguments[0].type


def _shorter(arguments: Sequence[Expression]) -> LogicalType:
    """VARCHAR of the length of the last string among the arguments."""
    lengths = [getattr(argument.type, "length", 0) for argument in arguments]
    return t.VarCharType(next(length for length in reversed(lengths) if length))


def _first_shorter(arguments: Sequence[Expression]) -> LogicalType:
    return _shorter(arguments[:1])


def _together(arguments: Sequence[Expression]) -> LogicalType:
    return t.VarCharType(min(MAX_LENGTH, sum(getattr(argument.type, "length", 0) for argument in arguments)))


def _unary(name: str, row: Any, vector: Any = None, spark: Any = None, returns: Any = _STRING) -> FunctionDefinition:
    sign = signature(name, CHARACTER, returns=returns)
    return _define(name, sign, row, vector, spark, returns_null=False)


# -- parts of strings --------------------------------------------------------------------------------------


def substring(text: str, start: int, length: int | None = None) -> str | None:
    """From the position, which counts from the end if negative; 0 is the first."""
    if length is not None and length < 0:
        return None
    size = len(text)
    begin = start - 1 if start > 0 else size + start if start < 0 else 0
    end = size if length is None else begin + length
    return text[begin:end] if begin >= 0 else ""


def _substring_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    constants: list[Any] = [
        argument.value if isinstance(argument, Literal) else None for argument in call.arguments[1:]
    ]
    if None in constants or constants[0] < 0:
        return None
    begin = max(constants[0] - 1, 0)
    end = None if len(constants) == 1 else begin + constants[1]
    if end is not None and end < begin:
        return None
    return lambda text, *_: pc.utf8_slice_codeunits(text, begin, end)


def left(text: str, length: int) -> str:
    return text[:length] if length > 0 else ""


def right(text: str, length: int) -> str:
    return text[-length:] if length > 0 else ""


def _left_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    length = call.arguments[1]
    if not isinstance(length, Literal) or length.value is None or length.value <= 0:
        return None
    end = length.value
    return lambda text, _: pc.utf8_slice_codeunits(text, 0, end)


def _overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    units, inserted = _units(text), _units(new)
    size = len(inserted) if length is None else length
    if start <= 0 or start > len(units):
        return text
    return _text(units[: start - 1] + inserted + (units[start - 1 + size :] if size >= 0 else []))


def split_index(text: str, separator: str | int, index: int) -> str | None:
    """The part of that number, which starts with 0."""
    if index < 0 or (isinstance(separator, int) and not 0 < separator <= 255):
        return None
    mark = chr(separator) if isinstance(separator, int) else separator
    parts = text.split(mark) if mark else re.split(r"\s", text)
    return parts[index] if index < len(parts) and text else None


def _split_index_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    _, separator, index = call.arguments
    if not isinstance(separator, Literal) or not isinstance(index, Literal):
        return None
    mark, position = separator.value, index.value
    if not isinstance(mark, str) or not mark or not isinstance(position, int) or position < 0:
        return None

    def evaluate(text: Any, *_: Any) -> Any:
        parts = pc.split_pattern(text, mark, max_splits=position + 1)
        enough = pc.and_(pc.greater(pc.list_value_length(parts), position), pc.greater(pc.binary_length(text), 0))
        places = pc.add(parts.offsets.slice(0, len(parts)), position)
        return parts.values.take(pc.if_else(enough, places, None))

    return evaluate


# -- search ------------------------------------------------------------------------------------------------


def position(what: str, text: str, start: int = 1) -> int:
    """The first position of a text from a position on; 0 if there is none."""
    return text.find(what, max(start - 1, 0)) + 1


def instr(text: str, what: str, start: int = 1, occurrence: int = 1) -> int:
    """The position of the n-th occurrence; from a negative position the search goes backwards."""
    if occurrence <= 0:
        return 0
    if start > 0:
        found = start - 2
        for _ in range(occurrence):
            found = text.find(what, found + 1)
            if found < 0:
                return 0
        return found + 1
    found = len(text) + start + 1
    for _ in range(occurrence):
        found = text.rfind(what, 0, found + len(what) - 1) if found >= 0 else -1
        if found < 0:
            return 0
    return found + 1


# -- changed strings ---------------------------------------------------------------------------------------


def _initcap(text: str) -> str:
    """Letters and digits are those of ASCII."""
    result, inside = [], False
    for character in text:
        is_word = character.isascii() and character.isalnum()
        changed = character.lower() if inside else character.upper()
        result.append(changed if is_word else character)
        inside = is_word
    return "".join(result)


def _units(text: str) -> list[bytes]:
    """The characters of Java: units of 16 bits."""
    encoded = text.encode("utf-16-be")
    return [encoded[index : index + 2] for index in range(0, len(encoded), 2)]


def _text(units: list[bytes]) -> str:
    """A unit that is half a character becomes a question mark."""
    return b"".join(units).decode("utf-16-be", "surrogatepass").encode("utf-8", "replace").decode()


def _padding(text: str, length: int, pad: str) -> tuple[list[bytes], list[bytes]] | None:
    if length < 0 or not pad:
        return None
    units, filler = _units(text), _units(pad)
    missing = length - len(units)
    return units[:length], (filler * missing)[: max(missing, 0)]


def _lpad(text: str, length: int, pad: str) -> str | None:
    parts = _padding(text, length, pad)
    return None if parts is None else _text(parts[1] + parts[0])


def _rpad(text: str, length: int, pad: str) -> str | None:
    parts = _padding(text, length, pad)
    return None if parts is None else _text(parts[0] + parts[1])


def _of_one_family(name: str) -> Signature:
    """Two texts, or two strings of bytes."""
    infer = signature(name, STRING_OR_BINARY, STRING_OR_BINARY, returns=t.BooleanType())

    def checked(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
        found = infer(arguments, symbols)
        if len({is_character(type_) for type_ in found.arguments}) > 1:
            raise mismatch(name, arguments, f"'{name}(<CHARACTER>, <CHARACTER>)' or '{name}(<BINARY>, <BINARY>)'")
        return found

    return checked


def _replace(text: str, search: str, replacement: str) -> str:
    if search:
        return text.replace(search, replacement)
    return replacement + "".join([unit + replacement for unit in java_units(text)])


def _translate(text: str, old: str | None, new: str | None) -> str | None:
    if text is None or new is None:
        return None
    table: dict[int, str | None] = {}
    for index, character in enumerate(old or ""):
        table.setdefault(ord(character), new[index] if index < len(new) else None)
    return text.translate(table)


def _concat(*parts: str) -> str:
    return "".join(parts)


def _concat_ws(separator: str | None, *parts: str | None) -> str | None:
    return None if separator is None else separator.join([part for part in parts if part is not None])


def _chr(code: int) -> str:
    if code < 0:
        return ""
    return chr(code & 0xFF)


def _trim(call: Call, session: Session) -> Callable[[str, str], str]:
    side = call.symbols[0]
    if side == "LEADING":
        return lambda what, text: text.lstrip(what) if what else text
    if side == "TRAILING":
        return lambda what, text: text.rstrip(what) if what else text
    return lambda what, text: text.strip(what) if what else text


def _trim_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    what = call.arguments[0]
    if not isinstance(what, Literal) or not what.value:
        return None
    kernels = {"LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim, "BOTH": pc.utf8_trim}
    kernel = kernels[call.symbols[0]]
    return lambda _, text: kernel(text, what.value)


def _stripper(method: Callable[..., str]) -> Callable[..., str]:
    return lambda text, what=" ": method(text, what) if what else text


# -- encodings ---------------------------------------------------------------------------------------------

_CHARSETS = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16-be",
}


def _decode(value: bytes, charset: str) -> str | None:
    name = _CHARSETS.get(charset.upper())
    if name is None:
        raise EvaluationError(f"Unsupported encoding '{charset}'.")
    return value.decode(name, "replace")


def _encode(text: str, charset: str) -> bytes | None:
    name = _CHARSETS.get(charset.upper())
    if name is None:
        raise EvaluationError(f"Unsupported encoding '{charset}'.")
    encoded = text.encode(name, "replace")
    return b"\xfe\xff" + encoded if charset.upper() == "UTF-16" and text else encoded


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError) as error:
        raise EvaluationError(f"'{text}' is not base64: {error}") from error


def _cased(kernel: Callable[[Any], Any], method: Callable[[str], str]) -> Callable[[Any], Any]:
    """Arrow's kernel for ASCII; its Unicode ones differ from Java."""

    def evaluate(text: Any) -> Any:
        if pc.all(pc.string_is_ascii(text)).as_py() is not False:
            return kernel(text)
        return to_column([None if value is None else method(value) for value in text.to_pylist()], _STRING)

    return evaluate


def _to_base64(value: str | bytes) -> str:
    return base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()


# -- definitions -------------------------------------------------------------------------------------------


def _starts_vector(kernel: Callable[..., Any]) -> Callable[[Call, Session], Callable[..., Any] | None]:
    def make(call: Call, session: Session) -> Callable[..., Any] | None:
        what = call.arguments[1]
        if not isinstance(what, Literal) or what.value is None:
            return None
        return lambda text, _: kernel(text, pattern=what.value)

    return make


_INTEGERS = (CHARACTER, INTEGER, INTEGER)

FUNCTIONS = (
    _unary("CHAR_LENGTH", "len({0})", pc.utf8_length, "char_length({0})", _INT),
    _unary("CHARACTER_LENGTH", "len({0})", pc.utf8_length, "char_length({0})", _INT),
    _unary("UPPER", "{0}.upper()", _cased(pc.ascii_upper, str.upper), "upper({0})", _same),
    _unary("LOWER", "{0}.lower()", _cased(pc.ascii_lower, str.lower), "lower({0})", _same),
    _unary("INITCAP", _initcap, returns=_same),
    _define(
        "REVERSE",
        signature("REVERSE", CHARACTER, returns=_STRING, nullable=True),
        "{0}[::-1]",
        pc.utf8_reverse,
        "reverse({0})",
    ),
    _unary("ASCII", lambda text: (text.encode()[0] + 128) % 256 - 128 if text else 0, returns=_INT),
    _define("FROM_BASE64", signature("FROM_BASE64", CHARACTER, returns=_STRING), _from_base64, can_fail=True),
    _define("TO_BASE64", signature("TO_BASE64", STRING_OR_BINARY, returns=_STRING), _to_base64),
    _define(
        "SUBSTRING",
        signature("SUBSTRING", *_INTEGERS, returns=_first_shorter, optional=1, nullable=True),
        substring,
        PerCall(_substring_vector),
    ),
    _define(
        "SUBSTR",
        signature("SUBSTR", *_INTEGERS, returns=_first_shorter, optional=1, nullable=True),
        substring,
        PerCall(_substring_vector),
    ),
    _define(
        "LEFT",
        signature("LEFT", CHARACTER, INTEGER, returns=_first_shorter, nullable=True),
        left,
        PerCall(_left_vector),
        "left({0}, {1})",
    ),
    _define(
        "RIGHT",
        signature("RIGHT", CHARACTER, INTEGER, returns=_first_shorter, nullable=True),
        right,
        None,
        "right({0}, {1})",
    ),
    _define(
        "OVERLAY", signature("OVERLAY", CHARACTER, CHARACTER, INTEGER, INTEGER, returns=_together, optional=1), _overlay
    ),
    _define(
        "SPLIT_INDEX",
        signature("SPLIT_INDEX", CHARACTER, _CODE, INTEGER, returns=_STRING, nullable=True),
        split_index,
        PerCall(_split_index_vector),
    ),
    _define("POSITION", signature("POSITION", CHARACTER, CHARACTER, INTEGER, returns=_INT, optional=1), position),
    _define("LOCATE", signature("LOCATE", CHARACTER, CHARACTER, INTEGER, returns=_INT, optional=1), position),
    _define("INSTR", signature("INSTR", CHARACTER, CHARACTER, INTEGER, INTEGER, returns=_INT, optional=2), instr),
    _define(
        "REPEAT", signature("REPEAT", CHARACTER, INTEGER, returns=_STRING), "({0} * {1})", None, "repeat({0}, {1})"
    ),
    _define("REPLACE", signature("REPLACE", CHARACTER, CHARACTER, CHARACTER, returns=_STRING), _replace),
    _define(
        "TRANSLATE",
        signature("TRANSLATE", CHARACTER, CHARACTER, CHARACTER, returns=_STRING),
        _translate,
        strict=False,
    ),
    _define("CONCAT", signature("CONCAT", CHARACTER, returns=_STRING, varargs=CHARACTER), _concat),
    _define(
        "CONCAT_WS", signature("CONCAT_WS", CHARACTER, returns=_STRING, varargs=CHARACTER), _concat_ws, strict=False
    ),
    _define("LPAD", signature("LPAD", CHARACTER, INTEGER, CHARACTER, returns=_STRING), _lpad),
    _define("RPAD", signature("RPAD", CHARACTER, INTEGER, CHARACTER, returns=_STRING), _rpad),
    _define("CHR", signature("CHR", INTEGER, returns=_STRING, nullable=True), _chr),
    _define(
        "TRIM",
        signature("TRIM", CHARACTER, CHARACTER, returns=_shorter),
        PerCall(_trim),
        PerCall(_trim_vector),
        lambda call, arguments: f"trim({call.symbols[0]} {arguments[0]} FROM {arguments[1]})",
    ),
    _define(
        "LTRIM", signature("LTRIM", CHARACTER, CHARACTER, returns=_first_shorter, optional=1), _stripper(str.lstrip)
    ),
    _define(
        "RTRIM", signature("RTRIM", CHARACTER, CHARACTER, returns=_first_shorter, optional=1), _stripper(str.rstrip)
    ),
    _define(
        "BTRIM",
        signature("BTRIM", CHARACTER, CHARACTER, returns=_STRING, optional=1, takes_null=True),
        _stripper(str.strip),
    ),
    _define(
        "STARTSWITH",
        _of_one_family("STARTSWITH"),
        "{0}.startswith({1})",
        PerCall(_starts_vector(pc.starts_with)),
        "startswith({0}, {1})",
    ),
    _define(
        "ENDSWITH",
        _of_one_family("ENDSWITH"),
        "{0}.endswith({1})",
        PerCall(_starts_vector(pc.ends_with)),
        "endswith({0}, {1})",
    ),
    _define(
        "DECODE",
        signature("DECODE", STRING_OR_BINARY, CHARACTER, returns=_STRING),
        _decode,
        can_fail=True,
    ),
    _define(
        "ENCODE",
        signature("ENCODE", CHARACTER, CHARACTER, returns=t.VarBinaryType()),
        _encode,
        can_fail=True,
    ),
)
