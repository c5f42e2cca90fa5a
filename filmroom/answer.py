"""What a reviewer writes where a correction needs an answer."""

import json
from typing import Any


def read_answer(text: str | None) -> Any:
    """A JSON object where it is one, else the text itself.

    >>> read_answer('{"predicate": "shop"}'), read_answer("Always confirm.")
    ({'predicate': 'shop'}, 'Always confirm.')
    """
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
