"""Programs whose functions change objects that they have emitted, stored or read."""
