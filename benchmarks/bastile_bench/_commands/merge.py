# Part of Bastile, under the MIT License. See LICENSE.
"""Join result files of one machine: of a row in several, the last file's is taken.

So a long measurement may be done in parts, and a part be done again.
"""

import pathlib

from bastile_bench import _report, _summary
from bastile_bench._commands import train

_SAME = ("gpu", "driver", "torch", "bastile", "device")
#: What tells rows apart; of most commands' rows only some of these are there.
_KEY = (
    *("op", "shape", "dtype", "direction", "provider", "kernel"),
    *("model", "batch", "seq"),
)


def add_arguments(parser) -> None:
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    parser.add_argument(
        "--out", required=True, metavar="FILE.json", help="what to write"
    )


def run(arguments) -> int:
    """Writes the joined file and its CSV."""
    documents = [_report.read(path) for path in arguments.results]
    joined = join(documents)
    path = pathlib.Path(arguments.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    _report.write_json(path, joined)
    _report.write_csv(path.with_suffix(".csv"), joined["rows"])
    print(f"{path}: {len(joined['rows'])} rows of {len(documents)} files")
    return 0


def join(documents) -> dict:
    """Raises ``ValueError`` if they are of several commands or machines."""
    first = documents[0]
    for other in documents[1:]:
        _check_same("command", _command(first), _command(other))
        for name in _SAME:
            old, new = (one["environment"].get(name) for one in (first, other))
            _check_same(name, old, new)
    rows = {
        tuple(str(row.get(name)) for name in _KEY): row
        for document in documents
        for row in document["rows"]
    }
    joined = {**first, "rows": list(rows.values()), "summary": []}
    joined["command"] = "; ".join(
        dict.fromkeys(document["command"] for document in documents)
    )
    if _command(first) == "kernels":
        joined["summary"] = _summary.summarize_speedups(joined["rows"])
    elif _command(first) == "train":
        train.judge(joined["rows"])
        joined["summary"] = train.summarize(joined["rows"])
    return joined


def _command(document):
    return document["command"].split()[0]


def _check_same(what, old, new):
    if old != new:
        raise ValueError(f"these do not belong together: {what} is {old} and {new}")
