"""One file a group of commands; each has `register(app)`."""
