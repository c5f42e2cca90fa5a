"""The attributes of one span while they are read: what is taken is gone, what is left is kept as it is."""

from pydantic import JsonValue

from store.sources.contract import BadRecord
from store.sources.fields import as_count, as_number, as_text
from store.sources.indexed import tree
from store.sources.json_text import Flaws, decoded, loaded
from store.sources.media import shortened
from store.sources.otel import Flat


class AttributeSet:
    """Attributes by their dotted names; pictures and other blobs in them are digests already."""

    def __init__(self, attributes: Flat) -> None:
        self.flaws = Flaws()
        self._left: Flat = {
            name: shortened(value)
            if isinstance(value, (list, dict)) or (isinstance(value, str) and "base64," in value)
            else value
            for name, value in attributes.items()
            if value is not None
        }
        self._families = {name.partition(".")[0] for name in self._left}
        """First words of the names, since most of what is asked for is of a convention that this span does not follow."""

    @property
    def rest(self) -> Flat:
        """What nobody took."""
        return self._left

    def follows(self, families: frozenset[str]) -> bool:
        """Whether any name began with one of these words: if not, nothing below them need be asked for."""
        return not self._families.isdisjoint(families)

    def peek(self, *names: str) -> JsonValue:
        """The first of these that is there, left in place; None: none is."""
        for name in names:
            if name in self._left:
                return self._left[name]
        return None

    def take(self, *names: str) -> JsonValue:
        """The first of these that is there; others of them that say the same go too. None: none is."""
        found: JsonValue = None
        if self._left.keys().isdisjoint(names):
            return found
        for name in names:
            if name not in self._left:
                continue
            value = self._left[name]
            if found is None or value == found:
                found = self._left.pop(name)
        return found

    def drop(self, *names: str) -> None:
        """Forget these and what is below them: what says again what was taken."""
        for name in names:
            if name.partition(".")[0] not in self._families:
                continue
            self._left.pop(name, None)
            for below in [key for key in self._left if key.startswith(name + ".")]:
                del self._left[below]

    def text(self, *names: str) -> str | None:
        """As `take`, as text."""
        return None if self._left.keys().isdisjoint(names) else as_text(self.take(*names)) or None

    def ident(self, *names: str) -> str | None:
        """An id as text, without the quotes that some producers leave around it."""
        found = self.text(*names)
        if found and len(found) > 2 and found[0] == found[-1] == '"':
            found = as_text(decoded(found, names[0], self.flaws))
        return found or None

    def count(self, *names: str) -> int | None:
        """The first of these that is a whole number; one that is none stays where it is."""
        if self._left.keys().isdisjoint(names):
            return None
        for name in names:
            if name not in self._left:
                continue
            try:
                number = as_count(self._left[name])
            except BadRecord:
                continue
            if number is not None:
                self.take(name)
                return number
        return None

    def number(self, *names: str) -> float | None:
        """The first of these that is a number; one that is none stays where it is."""
        if self._left.keys().isdisjoint(names):
            return None
        for name in names:
            if name not in self._left:
                continue
            try:
                number = as_number(self._left[name])
            except BadRecord:
                continue
            if number is not None:
                self.take(name)
                return number
        return None

    def json(self, *names: str) -> JsonValue:
        """As `take`, the object or list that a text holds as JSON; a text that holds none as it is."""
        for name in names:
            if name in self._left:
                return loaded(self.take(*names), name, self.flaws)
        return None

    def records(self, name: str) -> list[JsonValue]:
        """The list that an attribute holds; where it holds none (it was cut off), it stays where it is."""
        found = self.json(name)
        if isinstance(found, list):
            return found
        if found is not None:
            self._left[name] = found
        return []

    def encoded(self, *names: str) -> JsonValue:
        """As `take`, of attributes that are JSON by their definition, texts included."""
        for name in names:
            if name in self._left:
                return decoded(self.take(*names), name, self.flaws)
        return None

    def tree(self, prefix: str) -> JsonValue:
        """What stands under `prefix.` as a tree, else what `prefix` itself holds; None: neither is there."""
        if prefix.partition(".")[0] not in self._families:
            return None
        start = prefix + "."
        below = {name.removeprefix(start): name for name in self._left if name.startswith(start)}
        if not below:
            return self.json(prefix)
        flat = {short: self._left.pop(name) for short, name in below.items()}
        self._left.pop(prefix, None)
        return tree(flat)

    def fields(self, prefix: str) -> Flat:
        """What stands under `prefix.`, else the object that `prefix` itself holds; empty where it is no object."""
        found = self.tree(prefix)
        return found if isinstance(found, dict) else {}

    def items(self, prefix: str) -> list[JsonValue]:
        """What stands under `prefix.` by number, else the list that `prefix` itself holds; empty where it is no list."""
        found = self.tree(prefix)
        return found if isinstance(found, list) else []
