"""The values of SQL: numbers, dates and times, and their text."""
