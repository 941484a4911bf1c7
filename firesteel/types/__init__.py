"""Types of values: one logical model, and one module for each form that values have."""

# it exports names of this package, and is loaded first whichever of the two is imported
import firesteel.common  # noqa: F401
