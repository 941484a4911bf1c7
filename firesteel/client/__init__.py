"""The client library: finds clusters and starts them on this machine, loads programs, submits and watches jobs.

Used by the command line, and by programs and notebooks. It prints no results, parses no arguments and never exits the
process. Progress is reported to an object that the caller passes in.
"""
