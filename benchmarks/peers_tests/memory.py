# Part of Bastile, under the MIT License. See LICENSE.
"""Shares of a GPU's memory for tests that run side by side.

A test's numbers say how large its tensors are; one that needs gigabytes waits until
there are so many free pieces, which are files that processes lock.
"""

import contextlib
import fcntl
import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

#: Bytes of a piece.
PIECE = 8 << 30
#: Of rows and of columns, as tests of the peers call their sizes.
_ROWS = ("M", "B", "T", "BT", "S", "bs", "sl", "bsz", "batch_size", "seq_len")
_COLUMNS = ("N", "V", "H", "hd", "hidden_size", "vocab_size", "n_cols")
#: Copies that a test holds: operands, gradients, the reference's, and differences.
_COPIES = 8


def needed(arguments: Mapping[str, Any]) -> int:
    """Bytes that a test may take, of the arguments that it is called with."""
    sizes = {name: x for name, x in arguments.items() if isinstance(x, int)}
    rows = columns = 1
    for name in sizes.keys() & set(_ROWS):
        rows *= sizes[name]
    for name in sizes.keys() & set(_COLUMNS):
        columns = max(columns, sizes[name])
    return rows * columns * 4 * _COPIES


@contextlib.contextmanager
def share(folder: pathlib.Path, pieces: int, size: int) -> Iterator[None]:
    """Holds the pieces of a test of ``size`` bytes, out of ``pieces`` in ``folder``.

    One process at a time gathers pieces, so that none waits for another that waits
    for it.
    """
    wanted = min(size // PIECE, pieces)
    held = []
    try:
        if wanted:
            with open(folder / "gathering", "w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                held = _gather(folder, pieces, wanted)
        yield
    finally:
        for piece in held:
            piece.close()


def _gather(folder, pieces, wanted):
    files = [open(folder / f"piece-{i}", "w") for i in range(pieces)]
    held = []
    while len(held) < wanted:
        for file in list(files):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                files.remove(file)
                held.append(file)
                if len(held) == wanted:
                    break
        else:
            time.sleep(0.05)
    for file in files:
        file.close()
    return held
