"""The parser of Flink SQL."""

try:
    import sqlglot as _sqlglot  # noqa: F401
except ImportError as error:
    raise ImportError("Firesteel's SQL needs sqlglot, pyarrow and numpy: pip install 'firesteel[sql]'") from error

from firesteel.table.parser.dialect import parse_expression, parse_path, parse_query, parse_statement, parse_type
from firesteel.table.parser.errors import SqlParserException
from firesteel.table.parser.scripts import parse_script, split_script

__all__ = [
    "SqlParserException",
    "parse_expression",
    "parse_path",
    "parse_query",
    "parse_script",
    "parse_statement",
    "parse_type",
    "split_script",
]
