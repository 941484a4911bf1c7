"""Evaluation of bound expressions: generated functions over rows and over columns, and Spark SQL."""
