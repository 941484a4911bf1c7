"""The line editor of the shell: completion, colors, and when a statement is complete."""
