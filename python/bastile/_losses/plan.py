# Part of Bastile, under the MIT License. See LICENSE.
"""Sizes of chunks and slabs: how much of the logits is held at a time. They follow from
shapes and settings, so that they are the same in every run and on every rank."""

#: Below this, a chunk costs more for its launches than it saves.
_LEAST_BUDGET = 64 << 20
#: Rows and columns of the tiles that matrix products are made of.
_TILE = 128
#: Bytes that rows of logits are a multiple of: products of matrices whose rows begin
#: elsewhere take slower kernels, which load fewer bytes at a time.
_ALIGNMENT = 16
#: Classes of a slab: fewer leave a GPU idle in the products of short rows.
_SLAB = 8192


def budget_of(tokens, length, classes, size, settings):
    """The most bytes of logits that a call holds at a time.

    ``length`` is the length of a hidden state, ``size`` the bytes of an element. While
    all logits take no more than four times the weight's bytes, they are held at once,
    for then the weight's gradient needs no accumulator. Otherwise the logits take half
    of that memory, and the accumulator the other half.
    """
    classes = row_length(classes, size)
    if settings.budget is not None:
        return settings.budget
    if settings.recompute:
        return max(_SLAB * tokens * size, _LEAST_BUDGET)
    weight = classes * length * size
    whole = tokens * classes * size
    if whole <= max(4 * weight, _LEAST_BUDGET):
        return whole
    return max(2 * weight, _LEAST_BUDGET)


def row_length(classes, size):
    """Elements of ``size`` bytes from one row of logits to the next. Rows shorter than
    a tile, whose products are small, have no padding."""
    if classes < _TILE:
        return classes
    unit = _unit(size)
    return -(-classes // unit) * unit


def whole_length(classes, size):
    """The most of so many elements of ``size`` bytes that are a multiple of 16 bytes."""
    return classes - classes % _unit(size)


def _unit(size):
    """How many elements of ``size`` bytes `_ALIGNMENT` bytes have."""
    return max(_ALIGNMENT // size, 1)


def chunks(tokens, classes, size, budget):
    """Slices of the tokens whose logits, of all classes, ``budget`` allows."""
    return pieces(tokens, row_length(classes, size) * size, budget)


def slabs(tokens, classes, size, budget):
    """Slices of the classes whose logits, of all tokens, ``budget`` allows."""
    # Whole tiles need no padding, but all classes in one slab may.
    padding = row_length(classes, size) - classes
    return pieces(classes, tokens * size, budget - padding * tokens * size)


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
