"""The command line as a test types it, within this process."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from filmroom.main import main

Result = tuple[int, str, str]
"""Exit code, stdout and stderr."""
Run = Callable[..., Result]


def runner(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs one command at a time and returns what it left."""

    def run(*arguments: str) -> Result:
        capfd.readouterr()
        code = main(list(arguments))
        out, err = capfd.readouterr()
        return code, out, err

    return run


def value(result: Result) -> Any:
    """What a command that succeeded printed as JSON."""
    code, out, err = result
    assert code == 0, err
    return json.loads(out)
