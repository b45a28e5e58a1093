# Part of Bastile, under the MIT License. See LICENSE.
"""Results: rows that become a table, JSON and CSV.

A row is a flat dictionary of JSON's values; one of them may be a measurement, the
dictionary of ``_statistics.summarize``. All result files have one schema::

    {"schema": 1, "command": "kernels ...", "started": "2026-01-31T12:00:00Z",
     "environment": {...}, "rows": [...], "summary": [...]}
"""

import csv
import dataclasses
import datetime
import json
import os
import pathlib
import sys
from collections.abc import Callable

from bastile_bench import _statistics

SCHEMA = 1


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of the table: its title, and a row's text in it."""

    title: str
    text: "Callable[[dict], str] | str"
    #: Numbers are easier to compare when they end in one line.
    right: bool = True

    def of(self, row) -> str:
        if callable(self.text):
            return self.text(row)
        value = row.get(self.text)
        if value is None:
            return ""
        if is_measurement(value):
            return _statistics.spread_text(value)
        return str(value)


class Report:
    """The results of one command, written as they come.

    With a ``folder``, ``NAME.json`` and ``NAME.csv`` in it are up to date after
    every row, so that a run that is killed keeps what it measured.
    """

    def __init__(self, name: str, environment: dict, folder=None, arguments=None):
        words = sys.argv[1:] if arguments is None else arguments
        now = datetime.datetime.now(datetime.timezone.utc)
        self.document = {
            "schema": SCHEMA,
            "command": " ".join([name, *words[1:]]),
            "started": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "environment": environment,
            "rows": [],
            "summary": [],
        }
        self._path = None
        if folder is not None:
            folder = pathlib.Path(folder)
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / f"{name}.json"
        self.write()

    @property
    def rows(self) -> list:
        return self.document["rows"]

    @property
    def path(self) -> "pathlib.Path | None":
        """The JSON file; None where nothing is written."""
        return self._path

    def add(self, *rows: dict) -> None:
        """Adds rows and writes the files."""
        self.rows.extend(rows)
        self.write()

    def write(self) -> None:
        if self._path is None:
            return
        write_json(self._path, self.document)
        write_csv(self._path.with_suffix(".csv"), self.rows)


def is_measurement(value) -> bool:
    return isinstance(value, dict) and "median" in value


def read(path) -> dict:
    """A result file. Raises ``ValueError`` for what is none."""
    path = pathlib.Path(path)
    try:
        document = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict) or "rows" not in document:
        raise ValueError(
            f"{path} is no result file of python -m bastile_bench: it has no 'rows'"
        )
    if document.get("schema") != SCHEMA:
        raise ValueError(
            f"{path} has schema {document.get('schema')}, but {SCHEMA} is read"
        )
    return document


def write_json(path: pathlib.Path, document: dict) -> None:
    """Replaces the file at once, so that a reader never sees half of it."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(document, indent=1) + "\n")
    os.replace(part, path)


def write_csv(path: pathlib.Path, rows: list) -> None:
    """A line for each row; of a measurement, ``x`` is the median, ``x_low`` and
    ``x_high`` are the quartiles."""
    flat = [flatten(row) for row in rows]
    titles = list(dict.fromkeys(title for row in flat for title in row))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, titles)
        writer.writeheader()
        writer.writerows(flat)


def flatten(row: dict) -> dict:
    found = {}
    for key, value in row.items():
        if is_measurement(value):
            found[key] = value["median"]
            found[f"{key}_low"], found[f"{key}_high"] = value["low"], value["high"]
        elif isinstance(value, (list, dict)):
            found[key] = json.dumps(value)
        else:
            found[key] = value
    return found


def format_table(rows: list, columns: list) -> str:
    """Rows as aligned text, with a line of titles; columns that are empty in all
    rows are left out."""
    cells = [[column.of(row) for column in columns] for row in rows]
    shown = [i for i in range(len(columns)) if any(line[i] for line in cells)]
    lines = [[columns[i].title for i in shown]]
    lines += [[line[i] for i in shown] for line in cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(shown))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if columns[i].right else text.ljust(width)
            for text, width, i in zip(line, widths, shown)
        ).rstrip()
        for line in lines
    )


def shape_text(shape) -> str:
    """As in ``8192x2880``."""
    return "x".join(map(str, shape))


def number_text(key: str, digits: int, factor: float = 1.0) -> Callable:
    """What a column shows of a row's number ``key``, times ``factor``; nothing where the
    row has none."""

    def text(row):
        value = row.get(key)
        return "" if value is None else f"{factor * value:.{digits}f}"

    return text


def describe_environment(environment: dict) -> str:
    """One line for people: what was measured on."""
    words = [environment.get("gpu") or environment.get("processor", "")]
    for key, title in (
        ("driver", "driver"),
        ("cuda", "CUDA"),
        ("torch", "PyTorch"),
        ("triton", "Triton"),
        ("liger_kernel", "Liger"),
        ("quack_kernels", "QuACK"),
        ("bastile", "Bastile"),
    ):
        if environment.get(key):
            words.append(f"{title} {environment[key]}")
    return ", ".join(words)
