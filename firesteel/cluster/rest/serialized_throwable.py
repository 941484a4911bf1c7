"""Serialized Java throwables, the form of failures that Flink's Java clients require.

They read ``serialized-throwable`` and nothing else of a failure. What is written here is an
``org.apache.flink.util.SerializedThrowable`` that carries texts only, and no class that a client would have to have.
"""

from __future__ import annotations

import base64
import struct

__all__ = ["serialized_throwable"]

_HEADER = b"\xac\xed\x00\x05"
_NULL, _OBJECT, _STRING, _ARRAY, _CLASS, _END, _LONG_STRING = b"p", b"s", b"t", b"u", b"r", b"x", b"|"
_SERIALIZABLE, _WITH_WRITE_METHOD = 2, 3


def serialized_throwable(error_type: str, message: str, stack_trace: str) -> str:
    """A SerializedThrowable, as base64."""
    written = (
        _HEADER
        + _OBJECT
        + _THROWABLE_CLASS
        + _NULL  # the cause
        + _string(message)
        + _NO_STACK_TRACE
        + _NO_SUPPRESSED
        + _END
        + _string(stack_trace)
        + _string(error_type)
        + _NULL  # the original exception, which no client could load
    )
    return base64.b64encode(written).decode()


def _text(text: str) -> bytes:
    """Java's own UTF-8: a NUL takes two bytes, and what does not fit into 16 bits is written as two surrogates."""
    units = text.encode("utf-16-be", "surrogatepass")
    encoded = "".join(chr(unit) for (unit,) in struct.iter_unpack(">H", units)).encode("utf-8", "surrogatepass")
    return encoded.replace(b"\x00", b"\xc0\x80")


def _name(name: str) -> bytes:
    encoded = _text(name)
    return struct.pack(">H", len(encoded)) + encoded


def _string(text: str) -> bytes:
    encoded = _text(text)
    if len(encoded) > 0xFFFF:
        return _LONG_STRING + struct.pack(">Q", len(encoded)) + encoded
    return _STRING + struct.pack(">H", len(encoded)) + encoded


def _class(name: str, uid: int, flags: int, fields: tuple[tuple[str, str], ...], parent: bytes = _NULL) -> bytes:
    """A class with the names and types of its fields, and the class it extends."""
    written = b"".join(kind[0].encode() + _name(field) + _string(kind) for field, kind in fields)
    return _CLASS + _name(name) + struct.pack(">QBH", uid, flags, len(fields)) + written + _END + parent


_JAVA_THROWABLE = _class(
    "java.lang.Throwable",
    0xD5C635273977B8CB,
    _WITH_WRITE_METHOD,
    (
        ("cause", "Ljava/lang/Throwable;"),
        ("detailMessage", "Ljava/lang/String;"),
        ("stackTrace", "[Ljava/lang/StackTraceElement;"),
        ("suppressedExceptions", "Ljava/util/List;"),
    ),
)
_JAVA_EXCEPTION = _class("java.lang.Exception", 0xD0FD1F3E1A3B1CC4, _SERIALIZABLE, (), _JAVA_THROWABLE)
_THROWABLE_CLASS = _class(
    "org.apache.flink.util.SerializedThrowable",
    0x65169DF51FA713F3,
    _SERIALIZABLE,
    (
        ("fullStringifiedStackTrace", "Ljava/lang/String;"),
        ("originalErrorClassName", "Ljava/lang/String;"),
        ("serializedException", "[B"),
    ),
    _JAVA_EXCEPTION,
)
_NO_STACK_TRACE = (
    _ARRAY + _class("[Ljava.lang.StackTraceElement;", 0x02462A3C3CFD2239, _SERIALIZABLE, ()) + struct.pack(">I", 0)
)
_NO_SUPPRESSED = _OBJECT + _class("java.util.Collections$EmptyList", 0x7AB817B43CA79EDE, _SERIALIZABLE, ())
