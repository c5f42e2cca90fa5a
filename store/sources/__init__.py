"""Reading log files: one file a format or system, one contract, one registry.

`read` gives the traces, spans, feedback and rejected pieces of a file or folder; `recognise` says which reader it has.
"""

from store.sources.contract import Item, Reader, Sample, SourceOptions
from store.sources.registry import FORMATS, READERS, read, recognise

__all__ = ["FORMATS", "READERS", "Item", "Reader", "Sample", "SourceOptions", "read", "recognise"]
