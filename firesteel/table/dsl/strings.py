"""Functions of strings and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.table.dsl.base import ExpressionBase, node_of
from firesteel.table.parser import nodes

if TYPE_CHECKING:
    from firesteel.table.dsl.expression import Expression

__all__ = ["StringExpressions"]


class StringExpressions(ExpressionBase[Any]):
    """Functions of strings and bytes."""

    def concat(self, other: Any) -> Expression[Any]:
        """This string, followed by another."""
        return self._call("CONCAT", other)

    def starts_with(self, start_expr: Any) -> Expression[Any]:
        """Whether the string starts with another."""
        return self._call("STARTSWITH", start_expr)

    def ends_with(self, end_expr: Any) -> Expression[Any]:
        """Whether the string ends with another."""
        return self._call("ENDSWITH", end_expr)

    def substring(self, begin_index: Any, length: Any = None) -> Expression[Any]:
        """The characters from an index on, which begins at 1."""
        return self._call("SUBSTRING", begin_index, length)

    def substr(self, begin_index: Any, length: Any = None) -> Expression[Any]:
        """The characters from an index on, which begins at 1."""
        return self._call("SUBSTR", begin_index, length)

    def trim_leading(self, character: Any = None) -> Expression[Any]:
        """The string without blanks, or some characters, at its beginning."""
        return self._trimmed("LEADING", character)

    def trim_trailing(self, character: Any = None) -> Expression[Any]:
        """The string without blanks, or some characters, at its end."""
        return self._trimmed("TRAILING", character)

    def trim(self, character: Any = None) -> Expression[Any]:
        """The string without blanks, or some characters, at both ends."""
        return self._trimmed("BOTH", character)

    def replace(self, search: Any = None, replacement: Any = None) -> Expression[Any]:
        """The string with each occurrence of a string replaced."""
        return self._call("REPLACE", search, replacement)

    def translate(self, from_str: Any, to_str: Any) -> Expression[Any]:
        """The string with characters replaced by those at the same place of another string."""
        return self._call("TRANSLATE", from_str, to_str)

    @property
    def char_length(self) -> Expression[Any]:
        """The number of characters."""
        return self._call("CHAR_LENGTH")

    @property
    def upper_case(self) -> Expression[Any]:
        """The string in upper case."""
        return self._call("UPPER")

    @property
    def lower_case(self) -> Expression[Any]:
        """The string in lower case."""
        return self._call("LOWER")

    @property
    def init_cap(self) -> Expression[Any]:
        """The string with the first letter of each word in upper case."""
        return self._call("INITCAP")

    def like(self, pattern: Any = None, escape: Any = None) -> Expression[Any]:
        """Whether the string matches a LIKE pattern."""
        return self._like(pattern, escape)

    def similar(self, pattern: Any = None) -> Expression[Any]:
        """Whether the string matches a SIMILAR TO pattern."""
        return self._of(exp.SimilarTo(this=self._copy(), expression=node_of(pattern)))

    def position(self, haystack: Any = None) -> Expression[Any]:
        """The place of this string in another one; 0 if it is not there."""
        return self._call("POSITION", haystack)

    def lpad(self, length: Any, pad: Any) -> Expression[Any]:
        """The string, filled up to a length at its beginning."""
        return self._call("LPAD", length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression[Any]:
        """The string, filled up to a length at its end."""
        return self._call("RPAD", length, pad)

    def overlay(self, new_string: Any, starting: Any, length: Any = None) -> Expression[Any]:
        """The string with another one in place of the characters from an index on."""
        return self._call("OVERLAY", new_string, starting, length)

    def regexp(self, regex: Any) -> Expression[Any]:
        """Whether a regular expression matches some part of the string."""
        return self._call("REGEXP", regex)

    def regexp_count(self, regex: Any) -> Expression[Any]:
        """How many times a regular expression matches."""
        return self._call("REGEXP_COUNT", regex)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression[Any]:
        """The string with each match of a regular expression replaced."""
        return self._call("REGEXP_REPLACE", regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression[Any]:
        """A group of the first match of a regular expression."""
        return self._call("REGEXP_EXTRACT", regex, extract_index)

    def regexp_extract_all(self, regex: Any, extract_index: Any = None) -> Expression[Any]:
        """A group of all matches of a regular expression."""
        return self._call("REGEXP_EXTRACT_ALL", regex, extract_index)

    def regexp_instr(self, regex: Any) -> Expression[Any]:
        """The place of the first match of a regular expression; 0 if there is none."""
        return self._call("REGEXP_INSTR", regex)

    def regexp_substr(self, regex: Any) -> Expression[Any]:
        """The first match of a regular expression."""
        return self._call("REGEXP_SUBSTR", regex)

    @property
    def from_base64(self) -> Expression[Any]:
        """The string that is encoded in base64."""
        return self._call("FROM_BASE64")

    @property
    def to_base64(self) -> Expression[Any]:
        """The string in base64."""
        return self._call("TO_BASE64")

    @property
    def ascii(self) -> Expression[Any]:
        """The code of the first character."""
        return self._call("ASCII")

    @property
    def chr(self) -> Expression[Any]:
        """The character of a code."""
        return self._call("CHR")

    def decode(self, charset: Any) -> Expression[Any]:
        """The string that bytes of a character set stand for."""
        return self._call("DECODE", charset)

    def encode(self, charset: Any) -> Expression[Any]:
        """The bytes of the string in a character set."""
        return self._call("ENCODE", charset)

    def left(self, length: Any) -> Expression[Any]:
        """The first characters."""
        return self._call("LEFT", length)

    def right(self, length: Any) -> Expression[Any]:
        """The last characters."""
        return self._call("RIGHT", length)

    def instr(self, s: Any) -> Expression[Any]:
        """The place of another string in this one; 0 if it is not there."""
        return self._call("INSTR", s)

    def locate(self, s: Any, pos: Any = None) -> Expression[Any]:
        """The place of this string in another one, from a place on; 0 if it is not there."""
        return self._call("LOCATE", s, pos)

    def url_decode(self) -> Expression[Any]:
        """The text that is encoded for a URL."""
        return self._call("URL_DECODE")

    def url_encode(self) -> Expression[Any]:
        """The text, encoded for a URL."""
        return self._call("URL_ENCODE")

    def inet_aton(self) -> Expression[Any]:
        """The number of an IPv4 address."""
        return self._call("INET_ATON")

    def inet_ntoa(self) -> Expression[Any]:
        """The IPv4 address of a number."""
        return self._call("INET_NTOA")

    def parse_url(self, part_to_extract: Any, key: Any = None) -> Expression[Any]:
        """A part of a URL."""
        return self._call("PARSE_URL", part_to_extract, key)

    def printf(self, *obj: Any) -> Expression[Any]:
        """The values in a format."""
        return self._call("PRINTF", *obj)

    def ltrim(self, trim_str: Any = None) -> Expression[Any]:
        """The string without blanks, or some characters, at its beginning."""
        return self._call("LTRIM", trim_str)

    def rtrim(self, trim_str: Any = None) -> Expression[Any]:
        """The string without blanks, or some characters, at its end."""
        return self._call("RTRIM", trim_str)

    def btrim(self, trim_str: Any = None) -> Expression[Any]:
        """The string without blanks, or some characters, at both ends."""
        return self._call("BTRIM", trim_str)

    def repeat(self, n: Any) -> Expression[Any]:
        """The string so many times."""
        return self._call("REPEAT", n)

    @property
    def reverse(self) -> Expression[Any]:
        """The characters in the opposite order."""
        return self._call("REVERSE")

    def split_index(self, separator: Any, index: Any) -> Expression[Any]:
        """The part of a number, which begins at 0, between separators."""
        return self._call("SPLIT_INDEX", separator, index)

    def str_to_map(self, list_delimiter: Any = None, key_value_delimiter: Any = None) -> Expression[Any]:
        """The map of a text of keys and values."""
        return (
            self._call("STR_TO_MAP")
            if None in (list_delimiter, key_value_delimiter)
            else self._call("STR_TO_MAP", list_delimiter, key_value_delimiter)
        )

    def elt(self, expr: Any, *exprs: Any) -> Expression[Any]:
        """The argument of a number, which begins at 1."""
        return self._call("ELT", expr, *exprs)

    @property
    def md5(self) -> Expression[Any]:
        """The MD5 hash, as text in base 16."""
        return self._call("MD5")

    @property
    def sha1(self) -> Expression[Any]:
        """The SHA-1 hash, as text in base 16."""
        return self._call("SHA1")

    @property
    def sha224(self) -> Expression[Any]:
        """The SHA-224 hash, as text in base 16."""
        return self._call("SHA224")

    @property
    def sha256(self) -> Expression[Any]:
        """The SHA-256 hash, as text in base 16."""
        return self._call("SHA256")

    @property
    def sha384(self) -> Expression[Any]:
        """The SHA-384 hash, as text in base 16."""
        return self._call("SHA384")

    @property
    def sha512(self) -> Expression[Any]:
        """The SHA-512 hash, as text in base 16."""
        return self._call("SHA512")

    def sha2(self, hash_length: Any) -> Expression[Any]:
        """The SHA-2 hash of a length, as text in base 16."""
        return self._call("SHA2", hash_length)

    def _trimmed(self, side: str, characters: Any) -> Expression[Any]:
        removed = node_of(" " if characters is None else characters)
        return self._of(nodes.Call(this="TRIM", expressions=[exp.Var(this=side), removed, self._copy()]))

    def _like(self, pattern: Any, escape: Any) -> Expression[Any]:
        like = exp.Like(this=self._copy(), expression=node_of(pattern))
        return self._of(like if escape is None else exp.Escape(this=like, expression=node_of(escape)))
