"""Table environments: statements are executed here."""

try:
    import numpy as _numpy  # noqa: F401
    import pyarrow as _pyarrow  # noqa: F401
    import sqlglot as _sqlglot  # noqa: F401
except ImportError as error:
    raise ImportError("Firesteel's SQL needs sqlglot, pyarrow and numpy: pip install 'firesteel[sql]'") from error
