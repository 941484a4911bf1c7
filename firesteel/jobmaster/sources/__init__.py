"""Sources of a job: split enumerators and watermark alignment. No I/O."""
