"""The ``firesteel`` command: one module per verb, each with ``register`` and ``run``; ``terminal`` is shared."""
