"""What stands for the trace of feedback that names a span or a conversation, until the trace is known (`store.homes`)."""

SPAN, SESSION = "?span:", "?session:"


def of_span(span_external_id: str) -> str:
    """What stands for the trace of a span that is known by its own id alone.

    >>> is_address(of_span("3106a51940767992")), is_address("3106a51940767992")
    (True, False)
    """
    return SPAN + span_external_id


def of_session(session: str) -> str:
    """What stands for the newest trace of a conversation."""
    return SESSION + session


def is_address(trace_external_id: str) -> bool:
    """Whether this stands for a trace whose id is not known yet."""
    return trace_external_id.startswith((SPAN, SESSION))
