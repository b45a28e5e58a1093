# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Every valid function of the tests and examples, with gradients of both kinds, runs
as a GPU's code, on the emulator or on a GPU, and agrees with the evaluator, or is refused
with a reason, within `limited.seconds()` and 2 GB. Functions that neither can run are run
on the host.

Inputs/refused.txt lists the refused ones, so that they cannot grow unseen;
BASTILE_UPDATE_REFUSED=1 writes of that file what concerns the parts that run: once more
with BASTILE_TEST_LONG=1 for the other ones."""

import concurrent.futures
import os
import re

import pytest

import functions
import limited
from runner import find_tool, target

EXPECTED = os.path.join(os.path.dirname(__file__), "Inputs", "refused.txt")
#: The parts that the functions are tested in, of which `make test` has the first one.
PARTS = 20
MODES = {
    "call": [],
    "grad": ["--grad"],
    "value-and-grad": ["--value-and-grad"],
}


def run(function, mode):
    """The failure or refusal of a function; nothing if it is right."""
    is_emulated = target() == "host"
    if function.has_float64 or (function.has_long_rows and is_emulated):
        options = []
    else:
        options = ["--emulate"] if is_emulated else ["--target=gpu"]
    done = limited.run(
        [
            *(find_tool(), "-", "--repeat=0", "--rows=3,0", "--check"),
            *(*options, *MODES[mode]),
        ],
        function.text,
        limited.seconds(),
    )
    if done is None:
        return f"takes more than {limited.seconds()} s"
    if done.returncode == 0:
        return ""
    messages = re.findall(r"error: (.*)", done.stderr)
    if done.returncode == 1 and messages:
        return "refused: " + messages[0]
    return f"ends with {done.returncode}: {done.stderr[-500:]}{done.stdout}"


def run_all(function):
    return {mode: run(function, mode) for mode in MODES}


def name_of(line):
    return line.partition(" ")[0]


@pytest.mark.long(every=PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_functions(part):
    everything = list(functions.find())
    assert len(everything) > 200
    found = everything[part::PARTS]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run_all, found))
    refused, wrong = [], []
    for function, result in zip(found, results):
        for mode, text in result.items():
            line = f"{function.name} {mode}: {text}"
            if text.startswith("refused"):
                refused.append(line)
            elif text:
                wrong.append(line)
    assert not wrong, "\n".join(wrong)
    assert limited.largest_memory() < 2 << 30
    with open(EXPECTED, encoding="utf-8") as file:
        expected = file.read().splitlines()
    others = {x.name for x in everything} - {x.name for x in found}
    own = [line for line in expected if name_of(line) not in others]
    if os.environ.get("BASTILE_UPDATE_REFUSED"):
        rest = [line for line in expected if name_of(line) in others]
        with open(EXPECTED, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in sorted(rest + refused))
        own = sorted(refused)
    # Lines of functions that are gone are those of any part.
    assert sorted(refused) == own
