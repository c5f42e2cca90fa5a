"""LangSmith: batches, multipart bodies, runs that come in pieces or with wrong ids, feedback with corrections."""

import hashlib
import json
from pathlib import Path
from typing import Any

from store.records import Feedback, Rejected, Span, Trace
from store.sources import Item, read, recognise

A, B, C = (letter * 8 + "-0000-4000-8000-" + letter * 12 for letter in "abc")
ROOT = f"20260301T100000000000Z{A}"
CHILD = f"{ROOT}.20260301T100001000000Z{B}"
START_US = 1772359200000000


def run(**fields: Any) -> dict[str, Any]:
    said = {"id": A, "trace_id": A, "dotted_order": ROOT, "name": "agent", "run_type": "chain"}
    return said | {"start_time": "2026-03-01T10:00:00+00:00", "inputs": {"q": 1}, **fields}


def child(**fields: Any) -> dict[str, Any]:
    return run(id=B, dotted_order=CHILD, parent_run_id=A, start_time="2026-03-01T10:00:01+00:00", **fields)


def load(folder: Path, *values: object, name: str = "runs.jsonl") -> list[Item]:
    file = folder / name
    file.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    assert recognise(file).name == "langsmith"
    return list(read(file))


def trace_of(items: list[Item]) -> Trace:
    (found,) = [item for item in items if isinstance(item, Trace)]
    return found


def spans_of(items: list[Item]) -> list[Span]:
    return [item for item in items if isinstance(item, Span)]


def test_a_patch_ends_the_run_that_was_posted_also_where_it_comes_before(tmp_path: Path) -> None:
    patch = {"trace_id": A, "dotted_order": ROOT, "end_time": 1772359203000, "outputs": {"output": "yes"}}
    for name, bodies in {
        "one.jsonl": [{"post": [run()], "patch": [patch]}],
        "two.jsonl": [{"patch": [patch]}, {"post": [run()]}],
    }.items():
        trace = trace_of(load(tmp_path, *bodies, name=name))
        assert (trace.external_id, trace.input, trace.output, trace.status) == (A, {"q": 1}, "yes", "ok")
        assert (trace.started_us, trace.ended_us) == (START_US, START_US + 3_000_000)


def test_the_session_is_the_conversation_and_not_the_project(tmp_path: Path) -> None:
    metadata = {"thread_id": "s3", "user_id": "u7", "revision_id": "r2", "prompt_version": "p4"}
    trace = trace_of(load(tmp_path, run(session_id="project", session_name="prod", extra={"metadata": metadata})))
    assert (trace.session, trace.user, trace.app_version, trace.prompt_version) == ("s3", "u7", "r2", "p4")
    assert trace.attributes["project"] == "prod"


def test_an_error_is_its_first_words_and_its_class(tmp_path: Path) -> None:
    error = "KeyError('ORD-404')\n\nTraceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'ORD-404'\n"
    (span,) = spans_of(load(tmp_path, run(run_type="tool", error=error)))
    assert (span.kind, span.status, span.error, span.error_type) == ("tool", "error", "KeyError('ORD-404')", "KeyError")
    assert str(span.attributes["traceback"]).startswith("Traceback")


def test_tokens_are_found_in_the_outputs_and_costs_may_be_texts(tmp_path: Path) -> None:
    usage = {"input_tokens": 311, "output_tokens": 42, "input_token_details": {"cache_read": 256}}
    outputs = {"choices": [], "usage_metadata": usage}
    (span,) = spans_of(load(tmp_path, run(run_type="llm", outputs=outputs, total_cost="0.0125")))
    assert (span.input_tokens, span.output_tokens, span.cost_usd) == (311, 42, 0.0125)
    assert span.attributes["cache_read_tokens"] == 256


def test_documents_of_a_retriever_are_its_documents(tmp_path: Path) -> None:
    found = [{"page_content": "30 days", "metadata": {"source": "kb"}, "type": "Document"}]
    (span,) = spans_of(load(tmp_path, run(run_type="retriever", outputs={"documents": found})))
    assert span.documents == tuple(found)


def test_a_parent_that_is_missing_is_found_in_the_dotted_order(tmp_path: Path) -> None:
    items = load(tmp_path, child() | {"parent_run_id": None, "start_time": "2026-03-01T10:00:01"}, run())
    assert [(span.external_id, span.parent_external_id) for span in spans_of(items)] == [(A, None), (B, A)]


def test_feedback_in_a_file_of_its_own_joins_its_run_and_its_trace(tmp_path: Path) -> None:
    said = {"id": "f1", "run_id": B, "trace_id": A, "key": "correctness", "score": 0, "comment": "no"}
    said |= {"correction": {"answer": "30 days"}, "feedback_source": {"type": "app", "user_id": "ann"}}
    (given,) = load(tmp_path, said | {"created_at": "2026-03-02T10:00:00+00:00"}, name="feedback.json")
    (trace,) = [item for item in load(tmp_path, run(), child()) if isinstance(item, Trace)]
    assert given == Feedback(
        source="langsmith",
        trace_external_id=A,
        span_external_id=B,
        external_id="f1",
        name="correctness",
        score=0.0,
        comment="no",
        corrected_output={"answer": "30 days"},
        principal="ann",
        given_us=START_US + 86_400_000_000,
    )
    assert given.trace_id == trace.id


def test_feedback_whose_trace_id_is_none_waits_for_its_run(tmp_path: Path) -> None:
    said = {
        "id": "f1",
        "run_id": B,
        "trace_id": "a-header",
        "key": "k",
        "score": 1,
        "feedback_source": {"type": "model"},
    }
    (given,) = load(tmp_path, said)
    assert isinstance(given, Feedback)
    assert (given.trace_external_id, given.span_external_id, given.source_kind) == (f"?span:{B}", B, "judge")


def part(name: str, data: bytes) -> bytes:
    head = f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\nContent-Type: application/json\r\n'
    return head.encode() + f"Content-Length: {len(data)}\r\n\r\n".encode() + data + b"\r\n"


def test_a_part_of_a_multipart_body_that_is_broken_is_rejected_alone(tmp_path: Path) -> None:
    body = part(f"post.{A}", json.dumps(run()).encode()) + part(f"post.{A}.outputs", b'{"output": ')
    body += part(f"attachment.{A}.photo", b"\x89PNG--edge--") + b"--edge--\r\n"
    file = tmp_path / "body.bin"
    file.write_bytes(body)
    assert recognise(file).name == "langsmith"
    rejected, span, trace = read(file)
    assert isinstance(rejected, Rejected)
    assert (rejected.line, rejected.reason.split(":")[0]) == (7, f"part 'post.{A}.outputs'")
    assert isinstance(span, Span)
    assert isinstance(trace, Trace)
    digest = hashlib.sha256(b"\x89PNG--edge--").hexdigest()[:16]
    assert span.attributes["attachments"] == {"photo": f"data:;sha256={digest};bytes=12"}
    assert trace.input == {"q": 1}


def test_a_body_that_is_cut_off_says_so(tmp_path: Path) -> None:
    file = tmp_path / "body.bin"
    file.write_bytes(part(f"post.{A}", json.dumps(run()).encode())[:-40])
    assert "cut off" in [item.reason for item in read(file) if isinstance(item, Rejected)][-1]


def test_the_reference_of_an_evaluation_is_held_apart_and_nowhere_else(tmp_path: Path) -> None:
    judged = child(inputs={"inputs": {"q": 1}, "reference_outputs": "SECRET-1"})
    items = load(tmp_path, run(extra={"metadata": {"expected_output": "SECRET-2"}}), judged)
    assert set(trace_of(items).held_apart.values()) == {"SECRET-1", "SECRET-2"}
    assert "SECRET" not in json.dumps([item.model_dump(mode="json", exclude={"held_apart"}) for item in items])
