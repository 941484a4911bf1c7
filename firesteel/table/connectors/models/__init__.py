"""Providers of models."""
