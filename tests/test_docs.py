"""The documentation is run: console blocks of the README and of docs/ as transcripts, and every relative link.

A block that starts with ```` ```console ```` is a transcript. Lines with `$ ` are commands (`> ` continues one), the
lines below a command must occur in its output in that order. `...` stands for anything, `N` for any number. All blocks
of a file share one shell in an empty folder. `<!-- not run: reason -->` on the line before a block leaves it out.
"""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if path.exists()]
LINKING = [*PAGES, *(path for path in sorted(ROOT.glob("*.md")) if path not in PAGES), ROOT / "client" / "README.md"]
TIMEOUT_S = 600
MARK = "--- end of command:"
FENCE = re.compile(
    r"(?P<skip><!-- not run: [^\n]*-->\n)?^(?P<fence>`{3,})console *\n(?P<body>.*?)^(?P=fence) *$", re.M | re.S
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!\w+:|#)(?P<target>[^)#\s]+)|!\[[^\]]*\]\((?!\w+:)(?P<image>[^)\s]+)")
NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"


@dataclass
class Command:
    """One command of a transcript, the line it stands on, and what is shown below it."""

    text: str
    line: int
    shown: list[str] = field(default_factory=list)


def commands(markdown: str) -> list[Command]:
    """The commands of all console blocks that are run.

    Raises ValueError, naming the line, where a block shows output before its first command.
    """
    found: list[Command] = []
    for block in FENCE.finditer(markdown):
        if not block["skip"]:
            found += in_block(block["body"], markdown.count("\n", 0, block.start("body")) + 1)
    return found


def in_block(body: str, first_line: int) -> list[Command]:
    found: list[Command] = []
    for number, line in enumerate(body.splitlines(), first_line):
        if line.startswith("$ "):
            found.append(Command(line[2:], number))
        elif not found:
            raise ValueError(f"line {number}: a console block starts with a command, `$ ...`")
        elif line.startswith("> ") and not found[-1].shown:
            found[-1].text += "\n" + line[2:]
        elif line.strip():
            found[-1].shown.append(line)
    return found


def pattern(shown: str) -> re.Pattern[str]:
    """A shown line as an expression; runs of blanks are alike, since the width of a column is not a promise."""
    escaped = re.escape(" ".join(shown.split())).replace(r"\ ", " ").replace(re.escape("..."), ".*")
    return re.compile(re.sub(r"\bN\b", lambda _: NUMBER, escaped))


def missing(shown: list[str], output: str) -> str | None:
    """The first shown line that the output lacks after those before it; None where all are there."""
    lines = iter([" ".join(line.split()) for line in output.splitlines()])
    for expected in shown:
        wanted = pattern(expected)
        if expected.strip() != "..." and not any(wanted.fullmatch(line) for line in lines):
            return expected
    return None


def problems(markdown: str, folder: Path) -> list[str]:
    """What is wrong with a page's transcripts, run in `folder`; ends at the first command that fails."""
    todo = commands(markdown)
    outputs = run([command.text for command in todo], folder)
    found = []
    for command, (status, output) in zip(todo, outputs, strict=False):
        if status != "0":
            found.append(f"line {command.line}: `{command.text}` ended with {status}:\n{output}")
        elif (lacking := missing(command.shown, output)) is not None:
            found.append(f"line {command.line}: `{command.text}` does not print {lacking!r} but:\n{output}")
    if len(outputs) < len(todo) and not found:
        found.append(f"line {todo[len(outputs)].line}: `{todo[len(outputs)].text}` ended the shell or took too long")
    return found


def run(texts: list[str], folder: Path) -> list[tuple[str, str]]:
    """Status and output of each command, up to the first that fails; what they left running is ended."""
    script = "".join(f"{text}\ns=$?; printf '\\n{MARK}%s\\n' $s; [ $s = 0 ] || exit\n" for text in texts)
    log = folder / ".transcript"
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            shell.wait(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            shell.kill()
        finally:
            end_group(shell)
    parts = re.split(rf"\n{re.escape(MARK)}(\d+)\n", log.read_text(encoding="utf-8", errors="replace"))
    return list(zip(parts[1::2], parts[0::2], strict=False))


def end_group(shell: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(shell.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        shell.wait()


def environment(folder: Path) -> dict[str, str]:
    """The tests' own interpreter and programs first; a home of its own, a plain terminal of fixed width."""
    kept = {name: value for name, value in os.environ.items() if name in {"TMPDIR", "LANG", "OPENBLAS_CORETYPE"}}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return kept | {
        "PATH": path,
        "HOME": str(folder),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }


def dead_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    prose = re.sub(r"^(`{3,}).*?^\1`*$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    targets = [match["target"] or match["image"] for match in LINK.finditer(prose)]
    return [target for target in targets if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_transcripts_of_a_page_are_true(page: Path, tmp_path: Path) -> None:
    assert problems(page.read_text(encoding="utf-8"), tmp_path) == []


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_relative_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


GOOD = """
```console
$ echo 'read 1,204 traces in 0.31 s'; echo; echo 'cluster clu_9f   12  weights'
read N traces in N s
cluster clu_... N weights
$ cd /; export WORD=kept
$ pwd; echo $WORD \\
>   and on
/
kept and on
```

<!-- not run: it would end the shell -->
```console
$ exit 3
```

```sh
$ exit 4
```
"""


def test_a_true_transcript_has_no_problem(tmp_path: Path) -> None:
    assert problems(GOOD, tmp_path) == []


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("$ echo one\ntwo\n", "line 2: `echo one` does not print 'two' but:\none\n"),
        ("$ echo one; echo two\ntwo\none\n", "line 2: `echo one; echo two` does not print 'one' but:\none\ntwo\n"),
        ("$ echo 12\n13\n", "line 2: `echo 12` does not print '13' but:\n12\n"),
        ("$ echo no; false\n$ echo never\n", "line 2: `echo no; false` ended with 1:\nno\n"),
        ("$ true\n$ exit 0\n", "line 3: `exit 0` ended the shell or took too long"),
    ],
)
def test_a_false_transcript_is_told_with_its_line(block: str, problem: str, tmp_path: Path) -> None:
    assert problems(f"```console\n{block}```\n", tmp_path) == [problem]


def test_output_before_the_first_command_is_refused() -> None:
    with pytest.raises(ValueError, match="line 3: a console block starts with a command"):
        commands("text\n```console\nhello\n```\n")


def test_what_a_transcript_leaves_running_is_ended(tmp_path: Path) -> None:
    assert problems("```console\n$ (sleep 0.5; touch late) &\n```\n", tmp_path) == []
    time.sleep(1)
    assert not (tmp_path / "late").exists()


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](page.md#x) [b](gone.md) ![c](gone.png) [d](https://x.org) [e](#here) `[f](code.md)`\n")
    assert dead_links(page) == ["gone.md", "gone.png"]
