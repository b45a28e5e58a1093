# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""A schedule decides how a function runs, not what it computes."""

import pytest

import floats
import reference
from runner import ROWS, check_rows, function, target, tensor

HOST = (
    "",
    "rows=1,threads=1,vector=4,columns=64",
    "rows=4,columns=128",
    "columns=2880",
    "rows=3,columns=960",
    "persistent=1",
    "rows=2,vector=8,columns=192,persistent=2",
    "vector=1,columns=1",
)
GPU = (
    "",
    "threads=128",
    "rows=1,threads=128,vector=4,columns=1024",
    "rows=4,threads=384,columns=3072",
    "persistent=1",
    "rows=2,threads=256,vector=8,columns=2048,persistent=2",
    "rows=1,threads=32,vector=1,columns=32",
    "cluster=2",
    "cluster=4,threads=64,columns=4096",
    "cluster=8,threads=32,vector=1,columns=3072",
    "cluster=3,rows=2,threads=64,vector=4,columns=3072,persistent=2",
    "cluster=2,threads=32,vector=8,columns=512,persistent=1",
    "cluster=16,threads=32,vector=2,columns=3072",
)
LENGTH = 2880


@pytest.mark.long(every=17)
@pytest.mark.parametrize("kind", ("bf16", "f32"))
@pytest.mark.parametrize("schedule", HOST if target() == "host" else GPU)
def test_schedule(schedule, kind):
    row, vector = tensor((None, LENGTH), kind), tensor((LENGTH,), kind)
    shape = (max(ROWS), LENGTH)
    x = floats.random(kind, shape, 1)
    weight = floats.random(kind, LENGTH, 2)
    up = floats.random(kind, shape, 3)
    options = [f"--schedule={schedule}"] if schedule else []
    bound = 0.51 if kind in floats.NARROW else 64
    check_rows(
        function(
            [("x", row), ("weight", vector)],
            [row],
            [f"tile.rms_norm %x, %weight casting(gemma) : {row}, {vector}"],
        ),
        {"x": (kind, x), "weight": (kind, weight)},
        [reference.rms_norm(x, weight)],
        bound,
        *options,
    )
    # Without a reduction, there is nothing for a cluster to do.
    if "cluster" in schedule:
        return
    check_rows(
        function([("x", row), ("up", row)], [row], [f"tile.geglu %x, %up : {row}"]),
        {"x": (kind, x), "up": (kind, up)},
        [reference.geglu(x, up)],
        bound,
        *options,
    )
