"""Bounded SQL over Parquet: NEXMark's queries in batch mode, here, in Flink, and as plain Spark SQL."""
