"""Types of records and state, and what they are in Arrow."""

# it exports names of this package, and is loaded first whichever of the two is imported
import firesteel.common  # noqa: F401
