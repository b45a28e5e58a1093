"""Write the README's table of speeds from a result file, between its two markers.

Without --write, it says whether the README has what the file gives: the exit status
is 1 if not.
"""

import pathlib

from bastile.bench import _report
from bastile.bench._providers import PROVIDERS

BEGIN = "<!-- speed: written by python -m bastile.bench readme -->"
END = "<!-- speed: end -->"

#: What the table shows: op, shape, direction, and how it is called there.
ROWS = (
    ("rms_norm", (8192, 2880), "forward"),
    ("rms_norm", (16384, 8192), "forward"),
    ("rms_norm", (8192, 2880), "backward"),
    ("rms_norm", (16384, 8192), "backward"),
    ("layer_norm", (16384, 8192), "backward"),
    ("geglu", (8192, 2880), "forward"),
    ("geglu_interleaved", (8192, 2880), "backward"),
    ("swiglu", (16384, 14336), "backward"),
    ("softmax", (8192, 32768), "forward"),
    ("rope", (4, 2048, 32, 8, 128), "forward"),
    ("quantize_blocks", (16384, 4096), "forward"),
    ("cross_entropy", (8192, 128256), "both"),
    ("cross_entropy", (4096, 262144), "both"),
)
_DIRECTIONS = {"both": "loss and gradient"}


def add_arguments(parser) -> None:
    parser.add_argument("result", metavar="RESULT.json", help="of the command kernels")
    parser.add_argument(
        "--readme", default="README.md", metavar="FILE", help="(README.md)"
    )
    parser.add_argument("--write", action="store_true", help="write it")


def run(arguments) -> int:
    """Writes or checks the table."""
    path = pathlib.Path(arguments.readme)
    before = path.read_text()
    after = replace_table(before, make_table(_report.read(arguments.result)))
    if before == after:
        print(f"{path} has what {arguments.result} gives")
        return 0
    if not arguments.write:
        print(f"{path} differs from what {arguments.result} gives: use --write")
        return 1
    path.write_text(after)
    print(f"wrote the table of {path}")
    return 0


def make_table(document) -> str:
    """The table in Markdown, with a line above of what was measured on."""
    rows = {
        (row["op"], tuple(row["shape"]), row["direction"], row["provider"]): row
        for row in document["rows"]
        if row["status"] == "ok"
    }
    shown = [key for key in ROWS if (*key, "bastile") in rows]
    if not shown:
        raise ValueError("the result file has none of the rows that the README shows")
    others = [
        name
        for name in PROVIDERS
        if name != "bastile" and any((*key, name) in rows for key in shown)
    ]
    titles = ["op", "shape", "pass", "copy", "Bastile", "share of the copy's speed"]
    titles += [PROVIDERS[name].title for name in others]
    lines = [
        _report.describe_environment(document["environment"]) + "; microseconds:",
        "",
        _line(titles),
        _line(["---"] * len(titles)),
    ]
    return "\n".join(lines + [_line(_cells(rows, key, others)) for key in shown])


def _cells(rows, key, others):
    op, shape, direction = key
    ours = rows[(*key, "bastile")]
    cells = [
        op,
        _report.shape_text(shape),
        _DIRECTIONS.get(direction, direction),
        f"{ours['copy_us']['median']:.1f}",
        f"{ours['device_us']['median']:.1f}",
        f"{ours['share']:.2f}",
    ]
    for name in others:
        row = rows.get((*key, name))
        cells.append(f"{row['device_us']['median']:.1f}" if row else "")
    return cells


def _line(cells):
    return f"| {' | '.join(cells)} |"


def replace_table(text: str, table: str) -> str:
    """``text`` with ``table`` between its markers. Raises ``ValueError`` if they are
    not there."""
    for marker in (BEGIN, END):
        if text.count(marker) != 1:
            raise ValueError(f"the README must have the line '{marker}' once")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"
