"""Functions in Spark SQL with ANSI mode off, where Spark computes them with Flink's results."""
