"""The SQL Gateway: sessions in which clients execute statements, and the results that they fetch page by page."""
