"""The automaton of a pattern: state, event and time in; state and matches out."""
