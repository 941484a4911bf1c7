"""The streams that operations on a DataStream return, and what they share."""
