# Part of Bastile, under the MIT License. See LICENSE.
"""Sizes of chunks and slabs: how much of the logits is held at a time. They follow from
shapes and settings, so that they are the same in every run and on every rank."""

#: Below this, a chunk costs more for its launches than it saves.
_LEAST_BUDGET = 64 << 20
#: Rows and columns of the tiles that matrix products are made of.
_TILE = 128
#: Classes of a slab: fewer leave a GPU idle in the products of short rows.
_SLAB = 8192


def budget_of(tokens, length, classes, size, settings):
    """The most bytes of logits that a call holds at a time.

    ``length`` is the length of a hidden state, ``size`` the bytes of an element. While
    all logits take no more than four times the weight's bytes, they are held at once,
    for then the weight's gradient needs no accumulator. Otherwise the logits take half
    of that memory, and the accumulator the other half.
    """
    if settings.budget is not None:
        return settings.budget
    if settings.recompute:
        return max(_SLAB * tokens * size, _LEAST_BUDGET)
    weight = classes * length * size
    whole = tokens * classes * size
    if whole <= max(4 * weight, _LEAST_BUDGET):
        return whole
    return max(2 * weight, _LEAST_BUDGET)


def pieces(count, bytes_of_one, budget):
    """Slices that together are ``count`` tokens or classes: the fewest that
    ``budget`` bytes of logits allow, of equal size, and in whole tiles where
    there is room for one."""
    most = max(budget // bytes_of_one, 1) if bytes_of_one else count
    if count <= most:
        return [slice(0, count)] if count else []
    if most >= _TILE:
        most -= most % _TILE
    fewest = -(-count // most)
    step = -(-count // fewest)
    step = min(most, -(-step // _TILE) * _TILE)
    return [slice(a, min(a + step, count)) for a in range(0, count, step)]
