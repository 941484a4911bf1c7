"""Java's regular expressions as Python's, and as RE2's for Arrow where both have the same meaning.

Java differs from Python in classes within classes, ``\\p``, ``\\Q…\\E``, names of groups, flags inside a pattern, and
in what a dot leaves out. Its ``\\w``, ``\\d`` and ``\\s`` are ASCII.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

__all__ = ["RegexError", "compile_java", "to_re2"]


class RegexError(ValueError):
    """A pattern that is none in Java, or that Python cannot express."""


_NEWLINES = r"\n\r\u0085\u2028\u2029"
_ASCII_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_BINARY = {"Alphabetic": "L", "Letter": "L", "Lowercase": "Ll", "Uppercase": "Lu", "Digit": "Nd", "White_Space": "Z"}
_ESCAPED_CLASSES = {
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0b\f\r\x85\u2028\u2029",
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": r" \t\n\x0b\f\r",
}
_FLAGS = "idmsuxU"


@lru_cache(maxsize=64)
def _category(name: str) -> str:
    """The characters of a category of Unicode as ranges of a class."""
    ranges: list[str] = []
    start = None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(name)
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    if not ranges:
        raise RegexError(f"unknown category {name}")
    return "".join(ranges)


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._dot_all = False

    def translate(self) -> str:
        result = self._alternatives()
        if self._at < len(self._text):
            raise RegexError("unmatched )")
        return result

    def _peek(self, size: int = 1) -> str:
        return self._text[self._at : self._at + size]

    def _take(self, size: int = 1) -> str:
        taken = self._peek(size)
        if len(taken) < size:
            raise RegexError("unexpected end")
        self._at += size
        return taken

    def _until(self, end: str) -> str:
        stop = self._text.find(end, self._at)
        if stop < 0:
            raise RegexError(f"{end} expected")
        taken = self._text[self._at : stop]
        self._at = stop + len(end)
        return taken

    def _alternatives(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text) and self._peek() != ")":
            parts.append(self._part())
        return "".join(parts)

    def _part(self) -> str:
        character = self._take()
        if character == "\\":
            return self._escape()
        if character == "[":
            return f"[{self._class()}]"
        if character == "(":
            return self._group()
        if character == ".":
            return r"[\s\S]" if self._dot_all else f"[^{_NEWLINES}]"
        if character == "$":
            return r"(?=(?:\r\n|[\n\r\u0085\u2028\u2029])?\Z)"
        return character

    def _group(self) -> str:
        before = self._dot_all
        if self._peek() != "?":
            return self._closed("(", before)
        if self._peek(3) in ("?<=", "?<!"):
            return self._closed(f"({self._take(3)}", before)
        if self._peek(2) == "?<":
            self._take(2)
            return self._closed(f"(?P<{self._until('>')}>", before)
        if self._peek(2) in ("?:", "?=", "?!", "?>"):
            return self._closed(f"({self._take(2)}", before)
        self._take()
        return self._flags(before)

    def _closed(self, start: str, dot_all: bool) -> str:
        body = self._alternatives()
        if self._take() != ")":
            raise RegexError(") expected")
        self._dot_all = dot_all
        return f"{start}{body})"

    def _flags(self, before: bool) -> str:
        """Flags hold to the end of the group, which a group of their own ends at as well."""
        flags = ""
        while self._peek() in (*_FLAGS, "-"):
            flags += self._take()
        on, _, off = flags.partition("-")
        self._dot_all = ("s" in on or self._dot_all) and "s" not in off
        python = "".join(flag for flag in on if flag in "imx")
        minus = "".join(flag for flag in off if flag in "imx")
        start = f"(?{python}{f'-{minus}' if minus else ''}:"
        end = self._take()
        if end == ":":
            return self._closed(start, before)
        if end != ")":
            raise RegexError("unknown flag")
        return f"{start}{self._alternatives()})"

    def _escape(self) -> str:
        character = self._take()
        if character in _ESCAPED_CLASSES:
            return f"[{_ESCAPED_CLASSES[character]}]"
        if character.lower() in _ESCAPED_CLASSES:
            return f"[^{_ESCAPED_CLASSES[character.lower()]}]"
        if character in "pP":
            return f"[{'^' if character == 'P' else ''}{self._property()}]"
        if character == "Q":
            quoted = self._text[self._at :].partition("\\E")[0]
            self._at = min(len(self._text), self._at + len(quoted) + 2)
            return re.escape(quoted)
        if character == "k":
            self._take()
            return f"(?P={self._until('>')})"
        if character == "z":
            return r"\Z"
        if character == "Z":
            return r"(?=\n?\Z)"
        if character == "R":
            return r"(?:\r\n|[\n\x0b\f\r\u0085\u2028\u2029])"
        if character in "bBA" or character.isdigit():
            return f"\\{character}"
        return re.escape(self._character(character))

    def _character(self, character: str) -> str:
        """A character that is written with a backslash."""
        simple = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
        if character in simple:
            return simple[character]
        if character == "x":
            digits = self._until("}")[1:] if self._peek() == "{" else self._take(2)
            return self._code(digits)
        if character == "u":
            return self._code(self._take(4))
        if character == "c":
            return chr(ord(self._take()) ^ 64)
        if character.isalpha():
            raise RegexError(f"unknown escape \\{character}")
        return character

    def _code(self, digits: str) -> str:
        try:
            return chr(int(digits, 16))
        except ValueError:
            raise RegexError(f"not a character: {digits}") from None

    def _property(self) -> str:
        name = self._take()
        if name == "{":
            name = self._until("}")
        name = name.removeprefix("Is")
        if name in _ASCII_CLASSES:
            return _ASCII_CLASSES[name]
        name = _BINARY.get(name, name).partition("=")[2] or _BINARY.get(name, name)
        return _category(name)

    def _class(self) -> str:
        """The inside of a class; classes within it are united, ``&&`` intersects."""
        negated = self._peek() == "^"
        if negated:
            self._take()
        characters = self._members(first=True)
        while self._peek(2) == "&&":
            self._take(2)
            characters &= self._members(first=False)
        self._take()
        return ("^" if negated else "") + (_ranges(characters) if characters else r"^\s\S")

    def _members(self, first: bool) -> _Characters:
        found = _Characters()
        while True:
            if not self._peek():
                raise RegexError("] expected")
            if (self._peek() == "]" and not first) or self._peek(2) == "&&":
                return found
            first = False
            character = self._take()
            if character == "[":
                found |= _Characters.of_class(self._class())
            elif character == "\\" and self._peek() in "pPdDwWsShHvV":
                found |= _Characters.of_class(self._escape()[1:-1])
            else:
                if character == "\\":
                    character = self._character(self._take())
                if self._peek() == "-" and self._peek(2)[1:] not in ("]", "["):
                    self._take()
                    last = self._take()
                    if last == "\\":
                        last = self._character(self._take())
                    if last < character:
                        raise RegexError("range out of order")
                    found |= _Characters([(ord(character), ord(last))])
                else:
                    found |= _Characters([(ord(character), ord(character))])


class _Characters:
    """A set of characters as ranges."""

    def __init__(self, ranges: list[tuple[int, int]] | None = None) -> None:
        self.ranges = ranges or []

    @staticmethod
    def of_class(text: str) -> _Characters:
        negated = text.startswith("^")
        ranges: list[tuple[int, int]] = []
        found = re.findall(
            r"(\\U[0-9a-f]{8}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\.|.)(?:-(\\U[0-9a-f]{8}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\.|.))?",
            text[negated:],
            re.DOTALL,
        )
        for low, high in found:
            first = _ordinal(low)
            ranges.append((first, _ordinal(high) if high else first))
        made = _Characters(ranges)
        return made.inverted() if negated else made

    def inverted(self) -> _Characters:
        result, next_code = [], 0
        for low, high in sorted(self.ranges):
            if low > next_code:
                result.append((next_code, low - 1))
            next_code = max(next_code, high + 1)
        if next_code <= sys.maxunicode:
            result.append((next_code, sys.maxunicode))
        return _Characters(result)

    def __or__(self, other: _Characters) -> _Characters:
        return _Characters(self.ranges + other.ranges)

    def __and__(self, other: _Characters) -> _Characters:
        return (self.inverted() | other.inverted()).inverted()

    def __bool__(self) -> bool:
        return bool(self.ranges)


def _ordinal(text: str) -> int:
    if len(text) == 1:
        return ord(text)
    if text[1] in "xuU":
        return int(text[2:], base=16)  # noqa: FURB166 - \\u0041 is no prefix of Python
    return {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11}.get(text[1], ord(text[1]))


def _ranges(characters: _Characters) -> str:
    return "".join(f"\\U{low:08x}" if low == high else f"\\U{low:08x}-\\U{high:08x}" for low, high in characters.ranges)


@lru_cache(maxsize=1024)
def compile_java(pattern: str) -> re.Pattern[str]:
    """A pattern of Java as one of Python; RegexError if it is none."""
    try:
        return re.compile(_Translator(pattern).translate(), re.ASCII)
    except (re.error, OverflowError) as error:
        raise RegexError(str(error)) from error


_SAFE = re.compile(
    r"""(?:[^\\.\[\](){}?*+^$|]|\\[-\\.\[\](){}?*+^$|/&=,:;]|\[\^?(?:[^\\\[\]&-]|&(?!&)|(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]))+\]
    |\((?:\?:|(?!\?))|\)|\||\^|(?:[*+?]|\{\d+(?:,\d*)?\})\??(?![+*?{]))*""",
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def to_re2(pattern: str) -> str | None:
    """The pattern for RE2, if it has the same matches there."""
    if not pattern or not _SAFE.fullmatch(pattern):
        return None
    try:
        compile_java(pattern)
    except RegexError:
        return None
    return pattern
