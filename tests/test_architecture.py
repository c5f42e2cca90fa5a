"""The shape of the code: who may import whom, what is lazy, what `__all__` says, what no file may contain."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
ORDER = ("store", "models", "flows", "filmroom")
"""Each imports from itself and from what stands before it."""
PURE = ("store.records", "store.errors")
"""What `models` may know of the store."""
PREFECT = {"flows.improve", "flows.schedule"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
HEAVY = {"alembic", "pandas", "prefect", "scipy", "sklearn", "skops"}
SEALED = re.compile(
    r"(?<![\w.~])/(?:work|root|home|Users)/\w|^[<>]{7} "
    r"|py" + r"pi\.org|python" + r"hosted\.org|registry\." + r"npmjs|deb\." + r"debian\.org|crates" + r"\.io"
)
"""Folders of one machine, hosts of package registries, and what a merge left behind."""


def module_name(path: Path, root: Path = ROOT) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """The four packages' modules and their files."""
    files = [path for package in ORDER for path in (ROOT / package).rglob("*.py")]
    return {module_name(path): path for path in sorted(files)}


@cache
def imports(path: Path, package: str = "") -> frozenset[str]:
    """What a file imports, at its top or anywhere in it, as dotted names; `from a import b` is `a.b`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            start = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{start}.{alias.name}" for alias in node.names}
    return frozenset(names)


def ours(name: str) -> frozenset[str]:
    """The modules of the four packages that module `name` imports."""
    path = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    known = modules()
    found = (target if target in known else target.rpartition(".")[0] for target in imports(path, package))
    return frozenset(target for target in found if target in known)


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def roots(name: str) -> set[str]:
    return {target.partition(".")[0] for target in imports(modules()[name])}


def loaded_by(*names: str) -> set[str]:
    """The top-level packages in a fresh interpreter after importing `names`."""
    code = f"import importlib, sys; [importlib.import_module(n) for n in {names!r}]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stdout.split()}


def tracked() -> list[Path]:
    """The files that the repository holds or would hold."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def with_all() -> list[str]:
    """The modules that say `__all__`."""
    return [name for name, path in modules().items() if "\n__all__" in path.read_text(encoding="utf-8")]


def exported(module: ModuleType) -> set[str]:
    """The public names of a module, its submodules and what it merely imports from elsewhere left out."""
    return {
        name for name, value in vars(module).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }


@pytest.mark.parametrize("name", modules())
def test_imports_go_one_way(name: str) -> None:
    own = name.partition(".")[0]
    allowed = ORDER[: ORDER.index(own) + 1]
    assert [target for target in sorted(ours(name)) if not within(target, allowed)] == []


@pytest.mark.parametrize("name", [name for name in modules() if within(name, ("models",))])
def test_models_know_only_records_and_errors_of_the_store(name: str) -> None:
    assert [target for target in sorted(ours(name)) if not within(target, ("models", *PURE))] == []
    assert roots(name) & {"alembic", "prefect", "psycopg", "sqlalchemy", "sqlite3", "typer"} == set()


def test_records_and_errors_import_nothing_else_of_ours() -> None:
    pure = [name for name in modules() if within(name, PURE)]
    assert {name: targets for name in pure if (targets := {t for t in ours(name) if not within(t, PURE)})} == {}
    assert "sqlalchemy" not in loaded_by(*PURE)


def test_only_two_modules_import_prefect() -> None:
    assert {name for name in modules() if any(root.startswith("prefect") for root in roots(name))} <= PREFECT


def test_there_are_no_import_cycles() -> None:
    try:
        TopologicalSorter({name: ours(name) - {name} for name in modules()}).prepare()
    except CycleError as cycle:
        pytest.fail("cycle: " + " <- ".join(cycle.args[1]))


def test_the_client_imports_the_standard_library_only() -> None:
    allowed = sys.stdlib_module_names | {"filmroom_live"}
    files = sorted((ROOT / "client").rglob("*.py"))
    assert files
    found = {path.name: {name.partition(".")[0] for name in imports(path, "filmroom_live")} for path in files}
    assert {name: foreign for name, names in found.items() if (foreign := names - allowed)} == {}


@pytest.mark.parametrize("name", with_all())
def test_all_is_what_can_be_imported(name: str) -> None:
    module = importlib.import_module(name)
    if modules()[name].name == "__init__.py":
        assert sorted(module.__all__) == sorted(exported(module))
    assert [entry for entry in module.__all__ if not hasattr(module, entry)] == []
    assert len(module.__all__) == len(set(module.__all__))


def test_files_are_named_after_what_they_hold() -> None:
    places = (ROOT / folder for folder in (*ORDER, "client", "tests", "benchmarks"))
    files = [path for place in places for path in place.rglob("*.py")]
    assert [path for path in files if VAGUE & set(path.stem.split("_"))] == []


@pytest.mark.parametrize("name", [name for name in ("filmroom", "filmroom.main") if name in modules()])
def test_the_front_door_is_lazy(name: str) -> None:
    assert loaded_by(name) & HEAVY == set()


def test_no_file_names_one_machine_or_a_registry_or_has_marks_of_a_merge() -> None:
    assert list(sealed_lines(tracked())) == []


def test_a_machine_path_and_a_registry_are_found(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text(
        "see /home/" + "ann/x\nfine: src/home/x, docs/work/y\nhttps://py" + "pi.org/simple\n" + ">" * 7 + " 3f\n"
    )
    assert list(sealed_lines([file])) == [f"{file}:1", f"{file}:3", f"{file}:4"]


def sealed_lines(files: list[Path]) -> Iterator[str]:
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if SEALED.search(line):
                yield f"{path}:{number}"


def test_imports_are_read_wherever_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("import a.b\nfrom . import c\nfrom ..d import e\ndef f():\n    from g import h\n")
    assert imports(file, "top.inner") == {"a.b", "top.inner.c", "top.d.e", "g.h"}
