"""What the running program installs to take filmroom's live release; standard library only.

It leaves everything else (logs, decisions, training) to filmroom, which runs in an environment of its own.
"""

from filmroom_live.documents import Example, Fact, Note, Policy, Release, Rule
from filmroom_live.live import Live, Status
from filmroom_live.pinned import Pinned
from filmroom_live.prediction import Prediction
from filmroom_live.run_call import Outcome, run_call
from filmroom_live.tool_call import Changed, ToolCall

__all__ = [
    "Changed",
    "Example",
    "Fact",
    "Live",
    "Note",
    "Outcome",
    "Pinned",
    "Policy",
    "Prediction",
    "Release",
    "Rule",
    "Status",
    "ToolCall",
    "__version__",
    "run_call",
]

__version__ = "0.1.0"
