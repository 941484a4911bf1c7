"""The Table API: tables and the steps between them."""
