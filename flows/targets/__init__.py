"""The four targets. Each module has the same three verbs: `propose`, `apply`, `revert`."""

from collections.abc import Mapping
from types import MappingProxyType

from flows.targets import context, memory, tooling, weights
from flows.targets.contract import TargetFlow
from store.records import Target

FLOWS: Mapping[Target, TargetFlow] = MappingProxyType(
    {"context": context, "memory": memory, "tooling": tooling, "weights": weights}
)
