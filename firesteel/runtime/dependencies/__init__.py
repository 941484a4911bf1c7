"""Python dependencies of a job: files, archives, required packages and the interpreter."""
