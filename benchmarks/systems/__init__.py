"""One module per system; each has one function per case, of the same name, that starts the job."""
