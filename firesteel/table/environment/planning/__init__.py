"""Plans of statements: tables that are read and written, streams and rows of the program."""
