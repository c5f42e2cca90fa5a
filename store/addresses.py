"""What stands for the trace of feedback that names a span, a conversation, or a trace without saying whose log it is in,
until the trace is known (`store.homes`)."""

SPAN, SESSION, TRACE = "?span:", "?session:", "?trace:"


def of_span(span_external_id: str) -> str:
    """What stands for the trace of a span that is known by its own id alone.

    >>> is_address(of_span("3106a51940767992")), is_address("3106a51940767992")
    (True, False)
    """
    return SPAN + span_external_id


def of_session(session: str) -> str:
    """What stands for the newest trace of a conversation."""
    return SESSION + session


def of_trace(trace_external_id: str) -> str:
    """What stands for the trace that some log calls this."""
    return TRACE + trace_external_id


def is_address(trace_external_id: str) -> bool:
    """Whether this stands for a trace that is not known yet."""
    return trace_external_id.startswith((SPAN, SESSION, TRACE))
