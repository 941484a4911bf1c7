"""Savepoints and checkpoints of earlier versions, and the programs that wrote them."""
