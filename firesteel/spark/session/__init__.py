"""The SparkSession that jobs run on: its Java, its slots, its failures, and the output of its workers."""
