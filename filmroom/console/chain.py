"""The chain of causes as a picture: where each node and line stands, from what caused a thing to what it led to."""

from typing import Any

from filmroom.console.format import href
from store.records import Record

WIDTH, HEIGHT = 140, 40
GAP_X, GAP_Y = 28, 12
MOST_A_COLUMN = 7
"""Nodes drawn of one kind and depth; the rest is one node that counts them."""
MOST_COLUMNS = 9


class Node(Record):
    """A box of the picture, in its units."""

    id: str
    kind: str
    label: str
    href: str | None
    x: int
    y: int
    is_subject: bool = False


class Line(Record):
    """A line from the right side of one box to the left side of another."""

    x1: int
    y1: int
    x2: int
    y2: int


class Picture(Record):
    """The whole picture."""

    width: int
    height: int
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]


def picture(found: dict[str, Any]) -> Picture:
    """Columns from the farthest cause on the left to the farthest effect on the right.

    >>> found = {"id": "chg_0", "kind": "change", "causes": [{"id": "cor_0", "kind": "correction", "causes": []}],
    ...          "effects": []}
    >>> [(each.kind, each.x) for each in picture(found).nodes]
    [('correction', 0), ('change', 168)]
    """
    kinds: dict[str, str] = {found["id"]: found["kind"]}
    causes: set[tuple[str, str]] = set()
    effects: set[tuple[str, str]] = set()
    _walk(found, "causes", kinds, causes)
    _walk(found, "effects", kinds, effects)
    depths = {**_depths(found["id"], {(b, a) for a, b in causes}, -1), **_depths(found["id"], effects, 1)}
    edges = causes | effects
    columns: dict[int, list[str]] = {}
    for id_, depth in depths.items():
        columns.setdefault(depth, []).append(id_)
    kept = sorted(columns, key=abs)[:MOST_COLUMNS]
    _straighten(columns, edges)
    return _placed({depth: columns[depth] for depth in sorted(kept)}, kinds, edges, found["id"])


def _straighten(columns: dict[int, list[str]], edges: set[tuple[str, str]]) -> None:
    """Put each column in the order of what it leads to, or comes from, nearer to the subject: fewer lines cross."""
    near: dict[str, list[str]] = {}
    for cause, effect in edges:
        near.setdefault(cause, []).append(effect)
        near.setdefault(effect, []).append(cause)
    for depth in sorted(columns, key=abs)[1:]:
        inner = {id_: row for row, id_ in enumerate(columns.get(depth - (1 if depth > 0 else -1), []))}
        rows = {
            id_: min((inner[each] for each in near.get(id_, []) if each in inner), default=0) for id_ in columns[depth]
        }
        columns[depth].sort(key=lambda id_: (rows[id_], id_))


def _walk(node: dict[str, Any], name: str, kinds: dict[str, str], edges: set[tuple[str, str]]) -> None:
    """Collect the pairs of cause and effect below a node."""
    for each in node[name]:
        if not each["id"]:
            continue
        kinds[each["id"]] = each["kind"]
        edges.add((each["id"], node["id"]) if name == "causes" else (node["id"], each["id"]))
        _walk(each, name, kinds, edges)


def _depths(subject: str, edges: set[tuple[str, str]], step: int) -> dict[str, int]:
    """How many steps each is away on the longest way from the subject; edges lead away from it."""
    found = {subject: 0}
    for _ in range(MOST_COLUMNS):
        moved = False
        for near, far in edges:
            if near in found and far != subject and abs(found.get(far, 0)) < abs(found[near] + step):
                found[far] = found[near] + step
                moved = True
        if not moved:
            break
    return found


def _placed(columns: dict[int, list[str]], kinds: dict[str, str], edges: set[tuple[str, str]], subject: str) -> Picture:
    shown = {depth: ids[:MOST_A_COLUMN] for depth, ids in columns.items()}
    tallest = max(len(ids) + (len(columns[depth]) > len(ids)) for depth, ids in shown.items())
    height = tallest * (HEIGHT + GAP_Y) - GAP_Y
    nodes: dict[str, Node] = {}
    more: list[Node] = []
    for number, (depth, ids) in enumerate(shown.items()):
        rows = len(ids) + (len(columns[depth]) > len(ids))
        x, top = number * (WIDTH + GAP_X), (height - rows * (HEIGHT + GAP_Y) + GAP_Y) // 2
        for row, id_ in enumerate(ids):
            nodes[id_] = Node(id=id_, kind=kinds[id_], label=_label(id_), href=href(id_), x=x,
                              y=top + row * (HEIGHT + GAP_Y), is_subject=id_ == subject)  # fmt: skip
        if rows > len(ids):
            left = len(columns[depth]) - len(ids)
            more.append(Node(id=f"more {depth}", kind=f"and {left} more", label="", href=None, x=x,
                             y=top + (rows - 1) * (HEIGHT + GAP_Y)))  # fmt: skip
    lines = [_line(nodes[a], nodes[b]) for a, b in sorted(edges) if a in nodes and b in nodes]
    width = len(shown) * (WIDTH + GAP_X) - GAP_X
    return Picture(width=width, height=height, nodes=(*nodes.values(), *more), lines=tuple(lines))


def _line(first: Node, second: Node) -> Line:
    return Line(x1=first.x + WIDTH, y1=first.y + HEIGHT // 2, x2=second.x, y2=second.y + HEIGHT // 2)


def _label(any_id: str) -> str:
    return any_id if len(any_id) <= 16 else f"{any_id[:13]}…"
