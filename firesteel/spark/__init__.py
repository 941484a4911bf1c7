"""Execution of JobGraphs on Spark. The only package that imports pyspark."""
