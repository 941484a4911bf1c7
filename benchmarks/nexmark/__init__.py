"""The NEXMark benchmark in SQL: its tables, its queries, and what runs them here and in Flink."""
