"""`python -m filmroom`."""

from filmroom.main import entry

if __name__ == "__main__":
    entry()
