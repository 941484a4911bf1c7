"""The rules that rewrite plans, one per module; each docstring shows what a rule does."""
