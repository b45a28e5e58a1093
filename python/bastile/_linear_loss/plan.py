"""How many tokens' logits are held at a time."""

#: Below this, a chunk costs more for its launches than it saves.
_LEAST_BUDGET = 64 << 20
#: Rows of tiles that matrix products are made of.
_TILE = 128


def default_budget(tokens, length, classes, size):
    """The bytes of logits that a call holds at a time by default.

    ``length`` is that of a hidden state, ``size`` the bytes of an element. While
    all logits take no more than four times the weight's bytes, they are held at
    once, for then the weight's gradient needs no accumulator. Otherwise they
    share that memory with the accumulator, which takes half of it.
    """
    weight = classes * length * size
    whole = tokens * classes * size
    if whole <= max(4 * weight, _LEAST_BUDGET):
        return whole
    return max(2 * weight, _LEAST_BUDGET)


def rows_of_chunk(tokens, classes, size, budget):
    """The tokens of a chunk: the fewest chunks that ``budget`` bytes of logits
    allow, of equal size, in whole tiles where there is room for one."""
    most = max(budget // (classes * size), 1)
    if tokens <= most:
        return max(tokens, 1)
    if most >= _TILE:
        most -= most % _TILE
    chunks = -(-tokens // most)
    rows = -(-tokens // chunks)
    return min(most, -(-rows // _TILE) * _TILE)


def chunks(tokens, rows):
    """Slices of ``rows`` tokens that together are all of them."""
    return [slice(a, min(a + rows, tokens)) for a in range(0, tokens, rows)]
