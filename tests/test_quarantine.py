"""What cannot be read: kept, listed, read again once its cause is mended, or discarded."""

import io
import sys
from pathlib import Path

import pytest

from tests.commands import Run, value

GOOD = '{"type": "trace", "id": "1", "started": "2026-01-05T10:00:00Z", "input": "a"}'
NAIVE = '{"type": "trace", "id": "2", "started": "2026-01-05T10:00:00", "input": "b"}'
CUT = '{"type": "trace", "id": "3", "started": "2026-01-05T10:00:00Z", "input": "c"'
WRONG = '{"type": "trace", "id": "4", "input": "d", "feedback": [{"name": "thumb", "score": "x"}]}'
SETTINGS = '[sources.log]\nformat = "native"\n'


def ingested(run: Run, folder: Path, *lines: str, name: str = "log.jsonl") -> Path:
    """A log with these lines, read."""
    (folder / "filmroom.toml").write_text(SETTINGS, encoding="utf-8")
    log = folder / name
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    value(run("ingest", name, "--json"))
    return log


def counts(run: Run) -> tuple[int, int]:
    """Traces in the store and pieces in quarantine."""
    log = value(run("doctor", "--json"))["checks"], value(run("quarantine", "list", "--json"))["quarantined"]
    [store] = [check for check in log[0] if check["name"] == "store"]
    return int(store["detail"].split()[0]), log[1]


def test_what_is_read_after_a_setting_was_mended_leaves_the_quarantine(run: Run, tmp_path: Path) -> None:
    run("init")
    ingested(run, tmp_path, GOOD, NAIVE, CUT)
    (tmp_path / "filmroom.toml").write_text(SETTINGS + 'timezone = "UTC"\n', encoding="utf-8")
    done = value(run("ingest", "--retry", "--json"))
    assert (done["stored"], done["tried"], done["left"]) == (1, 2, 1)
    assert counts(run) == (2, 1)


def test_what_is_read_after_its_line_was_mended_leaves_the_quarantine(run: Run, tmp_path: Path) -> None:
    run("init")
    log = ingested(run, tmp_path, GOOD, CUT)
    log.write_text(f"{GOOD}\n{CUT}}}\n", encoding="utf-8")
    assert value(run("ingest", "--retry", "--json"))["left"] == 1
    assert counts(run) == (2, 0)


def test_a_piece_stays_where_another_log_has_taken_its_file(run: Run, tmp_path: Path) -> None:
    run("init")
    log = ingested(run, tmp_path, GOOD, CUT)
    log.write_text("\n".join([GOOD, '{"id": 17, "type": "feedback", "trace": "9"}']), encoding="utf-8")
    assert value(run("ingest", "--retry", "--json"))["left"] == 0
    assert counts(run)[1] == 1


def test_a_piece_whose_file_is_gone_is_read_by_itself(run: Run, tmp_path: Path) -> None:
    run("init")
    ingested(run, tmp_path, GOOD, NAIVE, CUT).unlink()
    (tmp_path / "filmroom.toml").write_text(SETTINGS + 'timezone = "UTC"\n', encoding="utf-8")
    assert value(run("ingest", "--retry", "--json"))["left"] == 1
    assert counts(run) == (2, 1)


def test_a_file_that_was_rejected_as_a_whole_is_read_again(run: Run, tmp_path: Path) -> None:
    run("init")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text(GOOD, encoding="utf-8")
    (tmp_path / "logs" / "b.jsonl").write_text('{"what": "is this"}', encoding="utf-8")
    assert value(run("ingest", "logs", "--json"))["quarantined"] == 1
    (tmp_path / "logs" / "b.jsonl").write_text(NAIVE.replace("00:00", "00:00Z"), encoding="utf-8")
    assert value(run("ingest", "--retry", "--json"))["left"] == 1
    assert counts(run) == (2, 0)


def test_retrying_twice_stores_nothing_twice(run: Run, tmp_path: Path) -> None:
    run("init")
    ingested(run, tmp_path, GOOD, NAIVE, CUT)
    (tmp_path / "filmroom.toml").write_text(SETTINGS + 'timezone = "UTC"\n', encoding="utf-8")
    run("ingest", "--retry")
    again = value(run("ingest", "--retry", "--json"))
    assert (again["stored"], again["left"], len(again["stays"])) == (0, 0, 1)


def test_an_ingest_shows_what_it_rejected_itself(run: Run, tmp_path: Path) -> None:
    run("init")
    ingested(run, tmp_path, *[CUT] * 5, name="old.jsonl")
    (tmp_path / "new.jsonl").write_text(f"{GOOD}\n{WRONG}\n", encoding="utf-8")
    code, _, err = run("ingest", "new.jsonl")
    assert (code, err) == (0, "  new.jsonl:2: feedback inside trace '4': score: not a number: 'x'\n")


def test_the_list_is_paged(run: Run, tmp_path: Path) -> None:
    run("init")
    ingested(run, tmp_path, GOOD, *[CUT + " " * n for n in range(5)])
    page = value(run("quarantine", "list", "--limit", "2", "--offset", "3", "--json"))
    assert (page["quarantined"], page["offset"], [each["line"] for each in page["pieces"]]) == (5, 3, [5, 6])
    assert {"quarantine", "path", "line", "reason", "format", "at_us"} == set(page["pieces"][0])
    assert "4 to 5 of 5" in run("quarantine", "list", "--limit", "2", "--offset", "3")[1]


def test_a_piece_is_shown_with_its_text_and_discarded(run: Run, tmp_path: Path) -> None:
    run("init")
    ingested(run, tmp_path, CUT)
    [piece] = value(run("quarantine", "list", "--json"))["pieces"]
    assert value(run("quarantine", "show", piece["quarantine"], "--json"))["raw"].strip() == CUT
    assert value(run("quarantine", "discard", piece["quarantine"], "--json")) == {"discarded": 1}
    assert counts(run)[1] == 0
    assert run("quarantine", "show", piece["quarantine"])[0] == 1


def test_standard_input_is_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{GOOD}\n{CUT}\n".encode())))
    done = value(run("ingest", "-", "--json"))
    assert (done["stored"], done["quarantined"]) == (1, 1)
    assert value(run("quarantine", "list", "--json"))["pieces"][0]["path"] == "-"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ingest", "log.jsonl", "--format", "nonsense"), "auto, native"),
        (("ingest", "log.jsonl", "--source", "nonsense"), "none"),
        (("ingest",), "--source"),
        (("ingest", "log.jsonl", "--retry"), "--retry"),
        (("quarantine", "discard"), "--all"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_there_is(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
