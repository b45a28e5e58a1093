# Part of Bastile, under the MIT License. See LICENSE.
"""The kinds of patches, one module each.

A module here has all that is special to one kind of entry: how classes that look like
it are found in a module of Python, the numbers that prove what they compute, and the
functions that take their place. It ends in ``KIND``, which `KINDS` lists. What an entry
says is in `bastile._patching.table`.
"""

from bastile._patching.kinds import (
    experts,
    gated_norms,
    heads,
    losses,
    masks,
    mlps,
    norms,
    residuals,
    rotations,
)

#: In the order in which patches are listed.
KINDS = (
    norms.KIND,
    gated_norms.KIND,
    # Where a layer alone is patched, its rotation is part of this.
    heads.KIND,
    rotations.KIND,
    mlps.KIND,
    experts.KIND,
    residuals.KIND,
    masks.KIND,
    losses.KIND,
)
#: By the class of an entry, its kind.
BY_ENTRY = {kind.entry: kind for kind in KINDS}
