"""What is built and installed: the two wheels, the locks, and who owns our import names."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.version import Version

from filmroom.distributions import IMPORT_NAMES, clashes

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "client"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^(?P<pin>[\w.-]+(\[[\w,]+\])?==[^ ]+)( ; (?P<marker>.*?))? \\$")


def built(project: Path, into: Path) -> Path:
    """The wheel of the project in that folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = into.glob("*.whl")
    return wheel


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def on_disk(root: Path, *packages: str) -> set[str]:
    files = (path for package in packages for path in (root / package).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix() for path in files if "__pycache__" not in path.parts}


def pinned(lock: Path) -> list[tuple[Requirement, str | None]]:
    """The pins of a lock, each with its marker."""
    found = (PIN.match(line) for line in lock.read_text(encoding="utf-8").splitlines())
    return [(Requirement(match["pin"]), match["marker"]) for match in found if match]


def isolated(code: str, *places: Path) -> str:
    """What `code` prints in an interpreter that sees the standard library and `places` only."""
    start = f"import sys; sys.path[:0] = {[str(place) for place in places]}; "
    done = subprocess.run([sys.executable, "-I", "-S", "-c", start + code], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_wheel_holds_the_four_packages_whole_and_nothing_else(tmp_path: Path) -> None:
    assert contents(built(ROOT, tmp_path)) == on_disk(ROOT, *IMPORT_NAMES)


def test_the_readme_is_declared_once_there_is_one() -> None:
    assert (PROJECT["project"].get("readme") == "README.md") == (ROOT / "README.md").exists()


def test_the_client_is_one_package_without_dependencies(tmp_path: Path) -> None:
    wheel = built(CLIENT, tmp_path)
    assert contents(wheel) == on_disk(CLIENT, "filmroom_live")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        assert b"Requires-Dist" not in archive.read(metadata)


def test_the_client_loads_the_standard_library_only(tmp_path: Path) -> None:
    wheel = built(CLIENT, tmp_path)
    code = (
        "known = set(sys.modules) | sys.stdlib_module_names; import filmroom_live; "
        "print(*{name.partition('.')[0] for name in sys.modules} - known)"
    )
    assert isolated(code, wheel).split() == ["filmroom_live"]


def test_nothing_else_owns_our_import_names() -> None:
    assert clashes() == []


def test_another_owner_of_an_import_name_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "prefect_flows-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: prefect-flows\nVersion: 1.0\n")
    (installed / "RECORD").write_text("flows/__init__.py,,\n")
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert clashes() == [
        "`flows` belongs to the distribution prefect-flows too: install filmroom in an environment of its own"
    ]


def test_a_folder_that_shadows_ours_is_named(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").touch()
    code = "from filmroom.distributions import clashes; print(*clashes(), sep='\\n')"
    assert isolated(code, tmp_path, ROOT).splitlines() == [
        f"`models` is loaded from {tmp_path.resolve() / 'models'}, not from {ROOT / 'models'}: "
        "take that folder off PYTHONPATH"
    ]


def test_there_is_a_lock_to_run_and_one_to_develop() -> None:
    assert [lock.name for lock in LOCKS] == ["dev.txt", "run.txt"]
    run, dev = ({str(pin) for pin, _ in pinned(ROOT / "requirements" / name)} for name in ("run.txt", "dev.txt"))
    assert run < dev


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_has_a_hash_and_no_line_an_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert len(entries) == len(pinned(lock)) > 0
    assert "://" not in text


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_the_lock_satisfies_what_the_project_declares(python: str) -> None:
    declared = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    versions = {}
    for pin, marker in pinned(ROOT / "requirements" / "dev.txt"):
        if marker is None or applies(marker, python):
            versions[pin.name] = Version(str(pin.specifier).removeprefix("=="))
    wanted = [
        want for text in declared if (want := Requirement(text)).marker is None or applies(str(want.marker), python)
    ]
    assert [str(want) for want in wanted if not fits(want, versions)] == []


def applies(marker: str, python: str) -> bool:
    environment = default_environment() | {"python_version": python, "python_full_version": f"{python}.9"}
    parsed = Requirement(f"x ; {marker}").marker
    return parsed is None or parsed.evaluate({key: str(value) for key, value in environment.items()})


def fits(want: Requirement, versions: dict[str, Version]) -> bool:
    return want.name in versions and want.specifier.contains(versions[want.name])


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`make` as from a shell, also where make itself started the tests."""
    command = ["make", *arguments]
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_make_lists_its_targets() -> None:
    targets = [line.split()[1] for line in make().stdout.splitlines()]
    assert targets == ["help", "demo", "test", "check", "format", "install", "lock", "screenshots", "clean"]


def test_make_refuses_an_interpreter_that_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = make("install", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"filmroom needs Python 3.11 to 3.14 and '{old}' is not")
    assert not (tmp_path / "venv").exists()
