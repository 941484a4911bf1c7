"""The text of HELP."""

from __future__ import annotations

__all__ = ["help_text", "welcome"]

_COMMANDS = (
    ("HELP", "Prints the available commands."),
    ("QUIT/EXIT", "Ends the shell; Ctrl-D does too."),
    ("CLEAR", "Clears the terminal; Ctrl-L does too."),
    ("SET", "Sets an option: SET 'key' = 'value'; SET; lists those that are set."),
    ("RESET", "Resets an option, RESET 'key'; or all of them, RESET;"),
    ("SELECT", "Runs a query. SET 'sql-client.execution.result-mode' = 'table', 'changelog' or 'tableau'."),
    ("INSERT INTO", "Starts a job that writes to a table; waits for it if 'table.dml-sync' is true."),
    ("BEGIN STATEMENT SET", "Begins a set of INSERT statements, which END; runs as one job."),
    ("EXPLAIN", "Draws the plan of a query or INSERT; all of it if 'sql-client.verbose' is true."),
    ("SHOW, DESCRIBE", "Shows catalogs, databases, tables, columns, functions and jobs."),
    ("STOP JOB", "Ends a job: STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN];"),
)
_KEYS = (
    ("Tab", "completes names, keywords and options"),
    ("Ctrl-R", "searches the history"),
    ("Ctrl-C", "clears the line; ends a query that runs"),
    ("Esc Enter", "begins a new line anywhere"),
)


def help_text() -> str:
    """What can be written."""
    commands = "\n".join(f"{name:<22} {text}" for name, text in _COMMANDS)
    keys = "\n".join(f"{name:<22} {text}" for name, text in _KEYS)
    return (
        f"The following commands are available:\n\n{commands}\n\n{keys}\n\n"
        'Hint: A statement ends with ";" and may have several lines. All statements of Flink SQL can be written.\n'
    )


def welcome(version: str, place: str, history: str) -> str:
    """What a new shell prints."""
    return (
        f"Firesteel SQL {version}, {place}. Enter 'HELP;' to list all available commands, 'QUIT;' to exit.\n"
        f"Command history file path: {history}\n\n"
    )
