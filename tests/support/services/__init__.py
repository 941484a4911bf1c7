"""Servers and clusters that run as processes of their own."""
