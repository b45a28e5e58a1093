# Part of Bastile, under the MIT License. See LICENSE.
"""Keys of tuned schedules: what they belong to."""

import functools
import hashlib
import re

#: The most rows of each bucket but the last.
BUCKETS = (1 << 10, 1 << 12, 1 << 14)


def bucket(rows: int) -> int:
    """The number of the bucket that a call with ``rows`` rows falls into."""
    return sum(rows > most for most in BUCKETS)


def slug(gpu: str) -> str:
    """A file name for a model of GPU: ``nvidia-h100-80gb-hbm3``."""
    return re.sub("[^a-z0-9]+", "-", gpu.lower()).strip("-")


@functools.lru_cache(maxsize=1024)
def key(request) -> str:
    """Equal for requests that the same schedules suit.

    These are equal in the ops, types and row lengths, in the names of functions, which
    kernels are called by, and in what is differentiated. The number of rows is none of
    it, and neither are numbers such as an epsilon, as long as they do not do away with a
    part of a formula: the compiler says so of the source (lib/driver/StructuralKey.h).
    """
    described = request.describe()
    parts = [
        described["key"],
        *_differentiated(request.gradients, described["functions"]),
        str(request.together),
        str(request.in_place),
        str(request.drop_value),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _differentiated(gradients, functions):
    """The operands whose gradients are computed, by their places: their names are no
    part of a formula."""
    inputs = functions[0]["inputs"] if functions else []
    places = {x["name"]: str(place) for place, x in enumerate(inputs)}
    floats = {x["name"] for x in inputs if "f" in x["type"]}
    if floats and floats == set(gradients):
        return ["all"]
    return sorted(places.get(name, name) for name in gradients)
