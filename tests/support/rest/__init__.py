"""The REST API and the web pages: servers, answers and their shapes."""
