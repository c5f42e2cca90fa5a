"""Evidence that a cluster is of several causes, which nothing tells apart: no single place mends it."""

from collections import Counter

import numpy as np
from scipy.sparse.csgraph import connected_components

from models.features.material import Feature, Material
from models.residue_causes import wanted_change

USERS = 3
"""Users who want a change, from which it is a cause of its own."""
TIED = 0.5
"""Share of the smaller change's words that the other has too, from which both are one."""


def several_causes(material: Material) -> float | None:
    """Share of the corrected failures beside a cluster without corrections that want another change than most; 0 to 1.

    Beside it: as evidence takes them in. Of changes that keep most of the answer, and that three users want. None where
    the cluster has corrections of its own, or none is beside it. Example: of one intent six users complain; beside them
    four others want a fee told, and three a card: 3 / 7.
    """
    if any(material.corrections):
        return None
    said = [(case, *wanted_change(case)) for case in material.with_siblings().cases]
    wanted = [(case.failure.source, change) for case, change, keeps in said if change and keeps]
    if not wanted:
        return None
    tied = [[2 * len(one & other) >= min(len(one), len(other)) for _, other in wanted] for _, one in wanted]
    _, groups = connected_components(np.array(tied), directed=False)
    users: dict[int, set[str]] = {}
    for (user, _), group in zip(wanted, groups.tolist(), strict=True):
        users.setdefault(group, set()).add(user)
    sizes = Counter(group for group in groups.tolist() if len(users[group]) >= USERS)
    return 1 - max(sizes.values()) / sizes.total() if sizes else 0.0


FEATURES: dict[str, Feature] = {"several_causes": several_causes}
