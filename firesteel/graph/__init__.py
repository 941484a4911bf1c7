"""Turns a program's transformations into a StreamGraph, a JobGraph of vertices, and an ExecutionGraph."""
