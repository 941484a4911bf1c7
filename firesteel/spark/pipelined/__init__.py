"""The pipelined execution on Spark: a barrier stage whose tasks are slots."""
