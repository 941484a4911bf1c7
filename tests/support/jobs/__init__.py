"""Jobs that tests run, and ways to run them."""
