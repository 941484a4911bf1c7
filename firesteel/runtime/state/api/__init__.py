"""What keyed and operator state is to operators, and what all state backends share."""
