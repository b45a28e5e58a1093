# Part of Bastile, under the MIT License. See LICENSE.
"""References that a peer's tests compare with, from the peer's own source."""

import ast
import pathlib
from typing import Any


def read(source: pathlib.Path, names: set[str]) -> dict[str, Any]:
    """The functions of ``names`` in a file, run without anything else of it but
    PyTorch: a reference may not reach a kernel."""
    import torch

    tree = ast.parse(source.read_text(encoding="utf-8"), str(source))
    tree.body = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in names
    ]
    found: dict[str, Any] = {"torch": torch, "Tensor": torch.Tensor}
    exec(compile(tree, str(source), "exec"), found)
    absent = names - found.keys()
    if absent:
        raise ValueError(f"{source} has no function {', '.join(sorted(absent))}")
    return {name: found[name] for name in names}
