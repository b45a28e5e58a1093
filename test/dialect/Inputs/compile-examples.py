#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Compiles every ```mlir block in the .td files given, with tile-opt.

An op is put into a function that has its operands as arguments; the type of each
is the one that the op states.
"""

import re
import subprocess
import sys
import textwrap


def blocks(text):
    for match in re.finditer(r"```mlir\n(.*?)```", text, re.DOTALL):
        yield text.count("\n", 0, match.start()) + 1, textwrap.dedent(match[1])


def statements(block):
    """Joins the lines that continue a statement."""
    result = []
    for line in block.rstrip().split("\n"):
        if line.startswith(" ") and result:
            result[-1] += " " + line.strip()
        else:
            result.append(line)
    return result


def types_of(statement):
    """The types at the end of a statement, nested brackets kept together."""
    text = re.sub("->| to ", ",", statement.rsplit(" : ", 1)[-1])
    types, depth, current = [], 0, ""
    for character in text:
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            types.append(current)
            current = ""
        else:
            current += character
    types.append(current)
    # A function type lists the operands of a launch.
    return [t.strip().strip("()") for t in types]


def wrap_statement(statement, number, align_last):
    """The op in a function with its operands as arguments. Where one type stands
    for several operands, they are the last ones, or with `align_last` the first.
    """
    operation = re.sub(r"^%\w+(, %\w+)* = ", "", statement)
    types = types_of(operation)
    # Where the result's type stands first, those of the operands follow.
    if operation.startswith("tile.iota"):
        types = types[1:]
    # Indices stand in brackets, or after some words; the types are of the others.
    indices = set(
        re.findall(r"\b(?:block|end|from|limit|parity|reaches) (%\w+)", operation)
    )
    indices.update(re.findall(r"\] to (%\w+) :", operation))
    for group in re.findall(r"\w\[(.*?)\]", operation):
        indices.update(re.findall(r"%\w+", group))
    operands = [o for o in re.findall(r"%\w+", operation) if o not in indices]
    arguments = dict.fromkeys(sorted(indices), "index")
    for index, name in enumerate(operands):
        if align_last:
            place = max(0, index - len(operands) + len(types))
        else:
            place = min(index, len(types) - 1)
        arguments[name] = types[place]
    signature = ", ".join(f"{name}: {type}" for name, type in arguments.items())
    module = (
        f"func.func @example{number}({signature}) {{\n  {statement}\n  return\n}}\n"
    )
    for kernel in re.findall(r"@(\w+)", operation):
        # A program whose operands have been lowered to addresses fits any launch.
        module += (
            f"tile.program @{kernel}(%x: !llvm.ptr) attributes {{leading = 0 : i64, "
            "schedule = #tile.rows<rows = 1, threads = 32, vector = 1, "
            "columns = 32>} {\n  tile.return\n}\n"
        )
    return module


def wrap(block):
    """The modules that show the block: as it is, or each of its ops in a function,
    of which one or another must compile.
    """
    block = re.sub(r" *//.*", "", block)
    if block.rstrip().endswith("\n}") and not re.match(r"func|tile\.\w+ @", block):
        # An op whose regions hold what it is about.
        block = f"func.func @example() {{\n{block}  return\n}}\n"
    if not re.match(r"func\.func|tile\.(kernel|program)", block):
        for number, statement in enumerate(statements(block)):
            yield [
                wrap_statement(statement, number, align_last)
                for align_last in (False, True)
            ]
        return
    # An ellipsis stands for what the reader may put there.
    block = block.replace(", ...", "").replace("(...)", "()")
    block = re.sub(r"\n( *)\.\.\.\n", "\n\\1tile.return\n", block)
    # What is shown for its attributes lacks its body.
    if block.rstrip().endswith("{"):
        block += "  tile.return\n}\n"
    if not block.rstrip().endswith("\n}"):
        block += "{\n  return\n}\n"
    yield [block]


def compile_module(module):
    return subprocess.run(
        ["tile-opt", "-"], input=module, capture_output=True, text=True
    )


def main():
    count = failures = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for line, block in blocks(text):
            count += 1
            for modules in wrap(block):
                results = [compile_module(module) for module in modules]
                if all(result.returncode != 0 for result in results):
                    failures += 1
                    print(f"{path}:{line}: example fails")
                    print(f"{modules[0]}{results[0].stderr}")
    print(f"{count} examples, {failures} failed")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
