"""A sequential interpreter of programs, written from Flink's documented semantics, without code of the runtime."""
