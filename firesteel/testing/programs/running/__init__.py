"""Runs drawn programs in many ways, with faults."""
