# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Results in the memory of arguments: the steps of optimizers, and what else reads rows
before it overwrites them. The emulator runs the code of a GPU, and finds races."""

import re
import subprocess

import pytest

from runner import find_tool, target

_ADAMW = """
func.func @adamw(%p: tensor<?x{n}x{kind}>, %g: tensor<?x{n}x{kind}>,
                 %m: tensor<?x{n}xf32>, %v: tensor<?x{n}xf32>,
                 %lr: tensor<1xf32>, %correction: tensor<1xf32>)
    -> (tensor<?x{n}x{kind}> {{tile.in_place = 0 : index}},
        tensor<?x{n}xf32> {{tile.in_place = 2 : index}},
        tensor<?x{n}xf32> {{tile.in_place = 3 : index}}) {{
  %beta1 = arith.constant dense<0.9> : tensor<1xf32>
  %rest1 = arith.constant dense<0.1> : tensor<1xf32>
  %beta2 = arith.constant dense<0.999> : tensor<1xf32>
  %rest2 = arith.constant dense<0.001> : tensor<1xf32>
  %eps = arith.constant dense<1.0e-8> : tensor<1xf32>
  %decay = arith.constant dense<0.01> : tensor<1xf32>
  %g32 = {extend} %g : tensor<?x{n}x{kind}> to tensor<?x{n}xf32>
  %p32 = {extend} %p : tensor<?x{n}x{kind}> to tensor<?x{n}xf32>
  %b1 = tile.broadcast %beta1 like %g32 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %r1 = tile.broadcast %rest1 like %g32 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %b2 = tile.broadcast %beta2 like %g32 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %r2 = tile.broadcast %rest2 like %g32 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %e = tile.broadcast %eps like %g32 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %d = tile.broadcast %decay like %g32 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %rate = tile.broadcast %lr like %g32 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %c = tile.broadcast %correction like %g32 : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %m0 = arith.mulf %m, %b1 : tensor<?x{n}xf32>
  %m1 = arith.mulf %g32, %r1 : tensor<?x{n}xf32>
  %next_m = arith.addf %m0, %m1 : tensor<?x{n}xf32>
  %square = arith.mulf %g32, %g32 : tensor<?x{n}xf32>
  %v0 = math.absf %v : tensor<?x{n}xf32>
  %v1 = arith.mulf %v0, %b2 : tensor<?x{n}xf32>
  %v2 = arith.mulf %square, %r2 : tensor<?x{n}xf32>
  %next_v = arith.addf %v1, %v2 : tensor<?x{n}xf32>
  %root = math.sqrt %next_v : tensor<?x{n}xf32>
  %divisor = arith.addf %root, %e : tensor<?x{n}xf32>
  %quotient = arith.divf %next_m, %divisor : tensor<?x{n}xf32>
  %corrected = arith.mulf %quotient, %c : tensor<?x{n}xf32>
  %shrunk = arith.mulf %p32, %d : tensor<?x{n}xf32>
  %both = arith.addf %corrected, %shrunk : tensor<?x{n}xf32>
  %change = arith.mulf %both, %rate : tensor<?x{n}xf32>
  %next = arith.subf %p32, %change : tensor<?x{n}xf32>
  %next_p = {truncate} %next : tensor<?x{n}xf32> to tensor<?x{n}x{kind}>
  return %next_p, %next_m, %next_v : tensor<?x{n}x{kind}>, tensor<?x{n}xf32>, tensor<?x{n}xf32>
}}
"""

# The norm of all rows, by which they are divided where they lie.
_NORMALIZE = """
func.func @normalize(%g: tensor<?x{n}xf32>) -> (tensor<?x{n}xf32> {{tile.in_place = 0 : index}}, tensor<1xf32>) {{
  %0 = arith.mulf %g, %g : tensor<?x{n}xf32>
  %1 = tile.reduce add %0 : tensor<?x{n}xf32> -> tensor<?x1xf32>
  %2 = tile.reduce_rows add %1 : tensor<?x1xf32> -> tensor<1xf32>
  %3 = math.sqrt %2 : tensor<1xf32>
  %4 = tile.broadcast %3 like %g : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %5 = arith.divf %g, %4 : tensor<?x{n}xf32>
  return %5, %3 : tensor<?x{n}xf32>, tensor<1xf32>
}}
"""

_SOFTMAX = """
func.func @softmax(%x: tensor<?x{n}xbf16>) -> (tensor<?x{n}xbf16> {{tile.in_place = 0 : index}}) {{
  %0 = tile.softmax %x : tensor<?x{n}xbf16>
  return %0 : tensor<?x{n}xbf16>
}}
"""

# Each of a pair of results needs both arguments.
_EXCHANGE = """
func.func @exchange(%x: tensor<?x{n}xf32>, %y: tensor<?x{n}xf32>)
    -> (tensor<?x{n}xf32> {{tile.in_place = 1 : index}}, tensor<?x{n}xf32> {{tile.in_place = 0 : index}}) {{
  %0 = arith.addf %x, %y : tensor<?x{n}xf32>
  %1 = arith.subf %x, %y : tensor<?x{n}xf32>
  return %0, %1 : tensor<?x{n}xf32>, tensor<?x{n}xf32>
}}
"""

# Halves of rows change places, and pairs of neighbours are rotated.
_HALVES = """
func.func @halves(%x: tensor<?x{n}xf32>) -> (tensor<?x{n}xf32> {{tile.in_place = 0 : index}}) {{
  %low, %high = tile.split %x : tensor<?x{n}xf32> -> tensor<?x{half}xf32>, tensor<?x{half}xf32>
  %0 = arith.negf %high : tensor<?x{half}xf32>
  %1 = tile.join %0, %low : tensor<?x{half}xf32>, tensor<?x{half}xf32> -> tensor<?x{n}xf32>
  return %1 : tensor<?x{n}xf32>
}}
"""
_PAIRS = """
func.func @pairs(%x: tensor<?x{n}xf32>) -> (tensor<?x{n}xf32> {{tile.in_place = 0 : index}}) {{
  %even, %odd = tile.split interleaved %x : tensor<?x{n}xf32> -> tensor<?x{half}xf32>, tensor<?x{half}xf32>
  %0 = arith.negf %odd : tensor<?x{half}xf32>
  %1 = tile.join interleaved %0, %even : tensor<?x{half}xf32>, tensor<?x{half}xf32> -> tensor<?x{n}xf32>
  return %1 : tensor<?x{n}xf32>
}}
"""

# A counter that all rows read, returned ahead of them.
_COUNTER = """
func.func @counter(%n: tensor<1xf32>, %x: tensor<?x{n}xf32>)
    -> (tensor<1xf32> {{tile.in_place = 0 : index}}, tensor<?x{n}xf32> {{tile.in_place = 1 : index}}) {{
  %0 = arith.addf %n, %n : tensor<1xf32>
  %1 = tile.broadcast %0 like %x : tensor<1xf32>, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
  %2 = arith.mulf %x, %1 : tensor<?x{n}xf32>
  return %0, %2 : tensor<1xf32>, tensor<?x{n}xf32>
}}
"""

# A vector that one sum of rows changes.
_VECTOR = """
func.func @vector(%x: tensor<?x{n}xf32>, %w: tensor<{n}xf32>) -> (tensor<{n}xf32> {{tile.in_place = 1 : index}}) {{
  %0 = tile.reduce_rows add %x : tensor<?x{n}xf32> -> tensor<{n}xf32>
  %1 = arith.subf %w, %0 : tensor<{n}xf32>
  return %1 : tensor<{n}xf32>
}}
"""


def make_adamw(kind, length):
    if kind == "bf16":
        casts = {"extend": "arith.extf", "truncate": "arith.truncf"}
        return _ADAMW.format(n=length, kind=kind, **casts)
    # There is nothing to cast.
    source = _ADAMW.format(n=length, kind=kind, extend="cast", truncate="cast")
    source = re.sub(r".* = cast .*\n", "", source)
    for cast, value in (("%g32", "%g"), ("%p32", "%p"), ("%next_p", "%next")):
        source = re.sub(f"{cast}\\b", value, source)
    return source


def check(source, rows, *options):
    done = subprocess.run(
        [
            *(find_tool(), "-", "--in-place", "--check", "--repeat=0"),
            *("--rows=" + ",".join(map(str, rows)), *options),
        ],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "PASS" in done.stdout


def on_all_machines(source, *options):
    check(source, (0, 1, 3, 70), f"--target={target()}", *options)
    check(source, (0, 1, 3), "--emulate", *options)


@pytest.mark.parametrize("kind", ("f32", "bf16"))
@pytest.mark.parametrize("length", (1, 7, 33, 1024, 4097))
def test_adamw(kind, length):
    on_all_machines(make_adamw(kind, length))


@pytest.mark.long(every=5)
@pytest.mark.parametrize("length", (1, 7, 1024, 4097))
@pytest.mark.parametrize("source", (_EXCHANGE, _COUNTER, _VECTOR))
def test_elements(source, length):
    on_all_machines(source.format(n=length))


@pytest.mark.long(every=5)
@pytest.mark.parametrize("length", (1, 7, 1024, 4097, 65536))
@pytest.mark.parametrize("source", (_NORMALIZE, _SOFTMAX))
def test_reduced_rows(source, length):
    on_all_machines(source.format(n=length))


@pytest.mark.parametrize("length", (2, 14, 1024, 5000))
@pytest.mark.parametrize("source", (_HALVES, _PAIRS))
def test_pieces(source, length):
    on_all_machines(source.format(n=length, half=length // 2))


@pytest.mark.parametrize("options", (["--gap=8"], ["--offset=3"]))
def test_memory_with_gaps(options):
    on_all_machines(make_adamw("bf16", 96), *options)
    on_all_machines(_SOFTMAX.format(n=4097), *options)


@pytest.mark.parametrize(
    "schedule",
    (
        "persistent=2,stages=2",
        "persistent=1,stages=3",
        "rows=4,threads=64",
        "columns=256",
        "columns=256,reread=shared",
        "cluster=2",
    ),
)
def test_schedules(schedule):
    """Rows that are loaded ahead, in parts or by several blocks are overwritten once
    nobody reads them any more."""
    options = "--emulate", f"--schedule={schedule}"
    check(_SOFTMAX.format(n=1024), (1, 5, 9), *options)
    # There is one sweep over rows of these, which no blocks share.
    if "reread" not in schedule and "cluster" not in schedule:
        check(_NORMALIZE.format(n=1024), (1, 5, 9), *options)
        check(make_adamw("bf16", 1024), (1, 5, 9), *options)


def test_arguments_that_change_places_in_several_kernels_are_refused():
    source = """
func.func @swap(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32> {tile.in_place = 0 : index}, tensor<?x8xf32> {tile.in_place = 1 : index}) {
  return %y, %x : tensor<?x8xf32>, tensor<?x8xf32>
}
"""
    with pytest.raises(AssertionError, match="cannot take the memory of argument 0"):
        check(source, (3,))
