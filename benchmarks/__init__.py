"""Throughput, latency and memory of Firesteel and its peers: `python -m benchmarks --help`."""
