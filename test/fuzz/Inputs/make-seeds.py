#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Writes the inputs that the fuzzers start from: make-seeds.py FOLDER.

They are the modules of the tests and examples, each alone and with its options in
the first line, and the metadata of the documentation.
"""

import io
import pathlib
import re
import shlex
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: A longer input takes too long to mutate.
MOST_BYTES = 6000
#: Passes on functions instead of modules.
FUNCTION_PASSES = {"split-rows"}
#: Passes of MLIR that tidy a test's output behind ours. The first takes a time that
#: grows with the cube of what a loop carries, and no target runs it there.
TIDYING_PASSES = {"canonicalize", "cse"}


def chunks(path):
    """The modules of a test, which tile-opt reads with -split-input-file."""
    text = path.read_text()
    for chunk in re.split(r"^// -----.*\n", text, flags=re.MULTILINE):
        # Comments are left out, as they hold expectations.
        lines = [
            line
            for line in chunk.splitlines()
            if line.strip() and not line.lstrip().startswith("//")
        ]
        source = "\n".join(lines) + "\n"
        if any(word in source for word in ("func", "tile.kernel", "tile.program")):
            yield source


def pipeline(flags):
    """``--tile=target=host --cse`` as ``builtin.module(tile{target=host},cse)``;
    nothing if no pass is among them."""
    passes = []
    for flag in flags:
        name, _, options = flag.removeprefix("--").partition("=")
        if not flag.startswith("--") or name.startswith(("mlir-", "verify")):
            continue
        text = f"{name}{{{options}}}" if options else name
        passes.append(f"func.func({text})" if name in FUNCTION_PASSES else text)
    while passes and passes[-1] in TIDYING_PASSES:
        passes.pop()
    return f"builtin.module({','.join(passes)})" if passes else None


def pass_seeds():
    for path in sorted((ROOT / "test").rglob("*.mlir")):
        pipelines = []
        for command in re.findall(r"RUN: tile-opt %s ([^|\n]*)", path.read_text()):
            found = pipeline(shlex.split(command.replace("2>&1", "")))
            if found and found not in pipelines:
                pipelines.append(found)
        for source in chunks(path):
            for found in pipelines:
                yield f"// options: --pass-pipeline={found}\n{source}"


def pipeline_seeds():
    files = [
        path
        for folder in ("test/dialect", "test/passes", "test/tools", "test/numerics")
        for path in sorted((ROOT / folder).rglob("*.mlir"))
    ]
    for path in [*files, *sorted((ROOT / "examples").glob("*.mlir"))]:
        for source in chunks(path):
            if "tensor<" in source:
                yield source


def metadata_seeds():
    text = (ROOT / "docs" / "metadata.md").read_text()
    yield from re.findall(r"```json\n(\{.*?)```", text, flags=re.DOTALL)
    for path in sorted((ROOT / "test/unit/runtime").glob("*.cpp")):
        for function in re.findall(
            r'R"\((\{\s*"name".*?)\)"', path.read_text(), re.DOTALL
        ):
            yield (
                '{"schema": "bastile.kernels", "version": 2, "compiler": "c", '
                f'"target": "sm_90", "functions": [{function}]}}'
            )


def npy_seeds():
    for dtype in ("f8", "f4", "f2", "i8", "i4", "i1", "?", "u1", "V2"):
        for shape in ((), (3,), (2, 3), (0, 4)):
            stream = io.BytesIO()
            numpy.save(stream, numpy.zeros(shape, dtype))
            yield stream.getvalue()


def main():
    folder = pathlib.Path(sys.argv[1])
    seeds = {
        "Pass": pass_seeds(),
        "Pipeline": pipeline_seeds(),
        "Metadata": metadata_seeds(),
        "Npy": npy_seeds(),
        # The mutator makes the first entry.
        "CacheEntry": [b""],
    }
    for name, contents in seeds.items():
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        for old in target.iterdir():
            old.unlink()
        count = 0
        for seed in contents:
            data = seed if isinstance(seed, bytes) else seed.encode()
            if len(data) <= MOST_BYTES:
                (target / f"{count:04}").write_bytes(data)
                count += 1
        print(f"{count} seeds for {name}")


if __name__ == "__main__":
    main()
