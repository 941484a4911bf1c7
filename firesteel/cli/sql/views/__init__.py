"""Results on the whole screen: models that become lines, and the terminal that shows them."""
