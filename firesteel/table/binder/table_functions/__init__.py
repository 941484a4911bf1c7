"""Table functions in FROM."""
