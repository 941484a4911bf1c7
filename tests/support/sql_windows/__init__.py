"""Tables with watermarks, and queries of windows over them that run in process."""
