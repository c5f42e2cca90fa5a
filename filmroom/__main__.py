"""`python -m filmroom`."""

from filmroom.main import entry

entry()
