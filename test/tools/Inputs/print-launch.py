#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Prints what the metadata says of a file's only launch, over named dimensions,
and of its first variant."""

import json
import sys


def show(name, value):
    print(name, json.dumps(value, sort_keys=True))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        (function,) = json.load(file)["functions"]
    (launch,) = function["launches"]
    show("dimensions", launch["dimensions"])
    show("maps", [operand["map"] for operand in launch["operands"]])
    show("shape", function["outputs"][0]["shape"])
    show("temporaries", function["temporaries"])
    variant = launch["variants"][0]
    for name in ("requires", "alignment"):
        show(name, variant[name])
    for argument in variant["arguments"]:
        show("arguments", argument)
    for name in ("grid", "block", "cluster", "shared_memory"):
        show(name, variant[name])


if __name__ == "__main__":
    main()
