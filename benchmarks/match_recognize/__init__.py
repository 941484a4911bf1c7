"""MATCH_RECOGNIZE beside Flink's, on the same generated payments."""
