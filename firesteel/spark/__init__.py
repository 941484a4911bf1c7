"""Puts a JobGraph on Spark. The only package that imports pyspark."""
