"""Simulated machines: clocks, threads, sockets, disks and the network between them."""
