"""Everything inside a slot: tasks, operators, state, time and the network between slots."""
