"""``firesteel sql``: an interactive SQL shell, and SQL scripts."""

from firesteel.cli.sql.command import register, run

__all__ = ["register", "run"]
