"""What the running program installs to take filmroom's live release; standard library only.

It leaves everything else (logs, decisions, training) to filmroom, which runs in an environment of its own.
"""

from filmroom_live.documents import Fact, Policy, Release, Rule
from filmroom_live.live import Live, Status
from filmroom_live.model import Prediction
from filmroom_live.pinned import Pinned
from filmroom_live.tool_call import Changed, ToolCall

__all__ = [
    "Changed",
    "Fact",
    "Live",
    "Pinned",
    "Policy",
    "Prediction",
    "Release",
    "Rule",
    "Status",
    "ToolCall",
    "__version__",
]

__version__ = "0.1.0"
