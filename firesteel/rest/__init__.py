"""The REST API: what it offers, declared once, and a client for it. The server is part of the cluster."""
