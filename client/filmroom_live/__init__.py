"""What the running program installs to take filmroom's live release; standard library only.

It leaves everything else (logs, decisions, training) to filmroom, which runs in an environment of its own.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
