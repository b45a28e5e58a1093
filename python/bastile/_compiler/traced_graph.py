# Part of Bastile, under the MIT License. See LICENSE.
"""The graph that this thread writes formulas into, and sizes that code depends on."""

import contextlib
import threading

_tracing = threading.local()


class FreeSizes(Exception):
    """A size that code depends on is free, such as that of a product's columns: those
    of ``places``, pairs of an operand's number and a dimension. Who traces fixes them
    and traces again."""

    def __init__(self, places):
        super().__init__("sizes that code depends on are free")
        self.places = frozenset(places)


def current():
    """The graph; None where this thread traces no function."""
    return getattr(_tracing, "graph", None)


@contextlib.contextmanager
def tracing_into(graph):
    """Has this thread's formulas written into ``graph`` meanwhile. Raises
    ``FreeSizes`` for errors of functions that let columns of products be free: they
    may need the size."""
    outer = current(), getattr(_tracing, "free_columns", set())
    _tracing.graph, _tracing.free_columns = graph, set()
    try:
        yield
    except (TypeError, ValueError) as error:
        if _tracing.free_columns:
            raise FreeSizes(_tracing.free_columns) from error
        raise
    finally:
        _tracing.graph, _tracing.free_columns = outer


def add_free_columns(places):
    """Notes that the columns of a product have the sizes of operands at ``places``."""
    _tracing.free_columns |= set(places)


def free_columns() -> frozenset[tuple[int, int]]:
    """What was noted since ``tracing_into``."""
    return frozenset(_tracing.free_columns)
