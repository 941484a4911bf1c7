"""The REST API: endpoint declarations and a client. The server is part of the cluster."""
