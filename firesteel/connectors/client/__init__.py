"""Sources and sinks of the client and the terminal: collect, print, discard, sockets."""
