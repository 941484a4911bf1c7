"""What the verbs of the command line share: options, tables, progress and the connection to a cluster."""
