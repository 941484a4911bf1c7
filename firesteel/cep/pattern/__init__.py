"""The pattern that a program describes: stages, quantifiers, conditions and the strategy after a match."""
