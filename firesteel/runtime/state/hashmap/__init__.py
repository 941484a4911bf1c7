"""Keyed state as Python objects in the slot's heap."""

from firesteel.runtime.state.hashmap.backend import HashMapKeyedStateBackend

__all__ = ["HashMapKeyedStateBackend"]
