#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Prints, for each kernel of the PTX on standard input, how many predicates it holds at
once at most: from the line that sets one for the last time to the last that reads it."""

import re
import sys


def count(lines):
    ranges = {}
    for place, line in enumerate(lines):
        sets = re.match(r"\s*(?:setp|(?:and|or|xor|not|mov)\.pred)\S*\s+(%p\d+)", line)
        for name in re.findall(r"%p\d+", line):
            if sets and name == sets.group(1):
                ranges[name] = [place, place]
            elif name in ranges:
                ranges[name][1] = place
    changes = [(first, 1) for first, _ in ranges.values()]
    changes += [(last, -1) for _, last in ranges.values()]
    held = most = 0
    for _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most


for text in sys.stdin.read().split(".entry ")[1:]:
    print(f"{text.partition('(')[0]}: {count(text.splitlines())}")
