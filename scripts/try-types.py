#!/usr/bin/python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Tries every model type of both versions of Transformers, and compares the tables in
docs/models.md with what is patched.

    scripts/try-types.py [--write]

A small model of each type runs as it is and patched (test/python/Inputs/try_types.py).
The exit status is 1 where a loss or gradient differs, where a type cannot be tried that
could be, or the other way round, and where the tables are not what is found; with
`--write` the tables are written. It takes a built package.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BASTILE_BUILD", ROOT / "build"))
DOCUMENT = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- scripts/try-types.py: begin -->\n", "<!-- end -->\n"
#: By column, the ops.
COLUMNS = {
    "norms": ["rms_norm"],
    "sums and norms": ["add_rms_norm"],
    "rotation": ["rope"],
    "norms and rotation": ["norm_rope"],
    "MLP": ["swiglu", "geglu"],
    "experts": ["moe"],
    "attention": ["attention"],
    "loss": ["fused_linear_cross_entropy"],
}
#: Losses differ in their last digits from machine to machine.
_LONG_NUMBER = re.compile(r"\b\d+\.\d{4,}\b")
_LENGTH = 96


def start(folder, version):
    """A process that tries all types of a version, and the file it writes."""
    paths = [BUILD / "python"]
    if version == 4:
        paths.insert(0, BUILD / "transformers-4")
    out = pathlib.Path(folder) / f"{version}.json"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    program = ROOT / "test" / "python" / "Inputs" / "try_types.py"
    command = [BUILD / "venv" / "bin" / "python", program, out]
    return subprocess.Popen(command, env=environment, stdout=sys.stderr), out


def try_all():
    """By major version of Transformers, what became of its types."""
    with tempfile.TemporaryDirectory() as folder:
        started = {version: start(folder, version) for version in (5, 4)}
        for version, (process, _) in started.items():
            if process.wait():
                sys.exit(f"try-types: Transformers {version}: the trial failed")
        return {v: json.loads(out.read_text()) for v, (_, out) in started.items()}


def cell(entries):
    """What became of all that looks like one op."""
    made = [x for x in entries if x["reason"] is None]
    if not made:
        return "left alone" if entries else ""
    word = "yes" if any(x["ran"] for x in made) else "found"
    return word if len(made) == len(entries) else f"{word}, in part"


def cells(ops):
    return [
        cell([x for op in names for x in ops.get(op, {}).values()])
        for names in COLUMNS.values()
    ]


def left(ops):
    """What is left alone, with reasons, of an op at a time."""
    by_reason = {}
    for op in ops.values():
        for target, entry in op.items():
            if entry["reason"] is not None:
                names = by_reason.setdefault(entry["reason"], {})
                names[target.removesuffix(".forward")] = None
    said = []
    for reason, names in by_reason.items():
        reason = " ".join(reason.split()).replace("|", "\\|")
        reason = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.3f}", reason)
        if len(reason) > _LENGTH:
            reason = reason[:_LENGTH].rpartition(" ")[0] + " ..."
        said.append(f"{', '.join(f'`{x}`' for x in names)}: {reason}")
    return "; ".join(said)


def table(rows, heads):
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def main_table(found):
    rows = []
    for module in sorted({*found["modules"], *found["served"]}):
        types = {x.partition(":")[0] for x in found["served"].get(module, [])}
        names = sorted(types - {module})
        first = f"`{module}`" + "".join(f", `{x}`" for x in names)
        ops = found["modules"].get(module, {})
        why = [left(ops)] if left(ops) else []
        for name in found["served"].get(module, []):
            if name in found["not_tried"]:
                why.append(f"`{name}` is not tried: {found['not_tried'][name]}")
        if any(cells(ops)) or why:
            rows.append([first, *cells(ops), "; ".join(why)])
    return table(rows, ["model", *COLUMNS, "left alone"])


def differences(new, old):
    """What of the models of both versions is patched in one of them alone."""
    rows = []
    for module in sorted(new["modules"].keys() & old["modules"].keys()):
        both = [cells(x["modules"][module]) for x in (new, old)]
        if both[0] != both[1]:
            differ = [
                f"{head}: {was or 'none'}"
                for head, now, was in zip(COLUMNS, *both)
                if now != was
            ]
            why = left(old["modules"][module])
            rows.append([f"`{module}`", "; ".join(differ), why])
    for name, reason in sorted(old["not_tried"].items()):
        if name not in new["not_tried"]:
            rows.append([f"`{name}`", "not tried", reason])
    return table(rows, ["model", "in Transformers 4", "left alone"])


def text(found):
    new, old = found[5], found[4]
    counts = {
        v: (sum(map(len, x["served"].values())), len(x["not_tried"]))
        for v, x in found.items()
    }
    return (
        f"Transformers {new['version']}: {counts[5][0]} models of all types, of which "
        f"{counts[5][1]} are not tried.\n\n{main_table(new)}\n"
        f"Transformers {old['version']}: {counts[4][0]} models of all types, of which "
        f"{counts[4][1]} are not tried. Where it differs:\n\n{differences(new, old)}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/models.md")
    arguments = parser.parse_args()
    found = try_all()
    problems = [
        f"Transformers {x['version']}: {problem}"
        for x in found.values()
        for problem in x["problems"]
    ]
    whole = DOCUMENT.read_text()
    before, _, rest = whole.partition(BEGIN)
    made = before + BEGIN + text(found) + END + rest.partition(END)[2]
    if arguments.write:
        DOCUMENT.write_text(made)
    elif made != whole:
        problems.append("docs/models.md is not current: scripts/try-types.py --write")
    for problem in problems:
        print(f"try-types: {problem}", file=sys.stderr)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
