"""Functions of users: their classes, what declares them, and how they are called."""
