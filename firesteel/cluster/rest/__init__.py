"""The server side of the REST API."""
