# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Sums of what a kernel has computed for groups of its columns, of rows and of larger
groups. Each vector of a group holds the group's number, and a sum takes it once."""

import subprocess

import pytest

from runner import find_tool, target

SOURCE = """
func.func @f(%x: tensor<?x{columns}x{type}>, %y: tensor<?x{groups}x{type}>)
    -> tensor<?x1x{type}> {{
  %c = arith.constant 0.0 : f32
  %0 = arith.extf %x : tensor<?x{columns}x{type}> to tensor<?x{columns}xf32>
  %1 = tile.reduce max %0 : tensor<?x{columns}xf32> -> tensor<?x{groups}xf32>
  %2 = arith.extf %y : tensor<?x{groups}x{type}> to tensor<?x{groups}xf32>
  %3 = tile.broadcast %c like %y : f32, tensor<?x{groups}x{type}> -> tensor<?x{groups}xf32>
  %4 = arith.cmpf ole, %2, %1 : tensor<?x{groups}xf32>
  %5 = arith.select %4, %2, %3 : tensor<?x{groups}xi1>, tensor<?x{groups}xf32>
  %6 = tile.reduce add %5 : tensor<?x{groups}xf32> -> tensor<?x1xf32>
  %7 = arith.truncf %6 : tensor<?x1xf32> to tensor<?x1x{type}>
  return %7 : tensor<?x1x{type}>
}}
"""


def check(source, *options):
    done = subprocess.run(
        [find_tool(), "-", "--repeat=0", "--rows=3,0", "--check", *options],
        input=source,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        (48, 3),
        (96, 4),
        (120, 5),
        (198, 33),
        (1536, 3),
        (4096, 8),
        (12288, 3),
        (65536, 4),
    ],
)
def test_sums_of_groups(columns, groups, element):
    emulated = ["--emulate", "--target=sm_90a"]
    options = emulated if target() == "host" else ["--target=gpu"]
    check(SOURCE.format(columns=columns, groups=groups, type=element), *options)


OF_LARGER_GROUPS = """
func.func @f(%x: tensor<?x{columns}xf32>, %y: tensor<?x{groups}xf32>)
    -> tensor<?x{larger}xf32> {{
  %0 = tile.reduce add %x : tensor<?x{columns}xf32> -> tensor<?x{groups}xf32>
  %1 = arith.addf %0, %y : tensor<?x{groups}xf32>
  %2 = tile.reduce add %1 : tensor<?x{groups}xf32> -> tensor<?x{larger}xf32>
  return %2 : tensor<?x{larger}xf32>
}}
"""


@pytest.mark.parametrize("schedule", ["", "vector=1"])
@pytest.mark.parametrize(
    ("columns", "groups", "larger"),
    [(12, 4, 2), (16, 4, 2), (27, 9, 3), (4096, 256, 16), (3072, 64, 8)],
)
def test_sums_of_larger_groups(columns, groups, larger, schedule):
    source = OF_LARGER_GROUPS.format(columns=columns, groups=groups, larger=larger)
    machines = [["--target=gpu"]]
    if target() == "host":
        machines = [["--target=host"], ["--emulate", "--target=sm_90a"]]
    pinned = [f"--schedule={schedule}"] if schedule else []
    for machine in machines:
        check(source, *machine, *pinned)
