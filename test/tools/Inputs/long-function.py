# Part of Bastile, under the MIT License. See LICENSE.
"""Prints a function of many elementwise ops on two operands.

long-function.py OPS COLUMNS [PRODUCTS]: with a third argument, each is a product.
"""

import random
import sys

OPS, COLUMNS = map(int, sys.argv[1:3])
TYPE = f"tensor<?x{COLUMNS}xf32>"

print(f"func.func @long(%x: {TYPE}, %w: {TYPE}) -> {TYPE} {{")
print(f"  %v0 = arith.addf %x, %w : {TYPE}")
choices = random.Random(0)
for i in range(OPS):
    if len(sys.argv) > 3:
        op = "mulf"
    elif i % 2 == 0:
        op = choices.choice(["mulf", "addf", "subf"])
    else:  # what brings every second number back to the operands
        op = choices.choice(["minimumf", "maximumf"])
    operand = choices.choice(["%x", "%w"])
    print(f"  %v{i + 1} = arith.{op} %v{i}, {operand} : {TYPE}")
print(f"  return %v{OPS} : {TYPE}\n}}")
