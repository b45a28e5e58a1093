"""Where measurements and results are kept: a log that only grows, and tables."""

import importlib.resources
import json
import os
import pathlib

from bastile._tuning import keys


def cache_folder() -> pathlib.Path | None:
    """The folder that compiled kernels are kept in as well (docs/cache.md);
    ``None`` where the user wants nothing on disk."""
    folder = os.environ.get("BASTILE_CACHE_DIR")
    if folder == "" or os.environ.get("BASTILE_CACHE") == "0":
        return None
    if folder:
        return pathlib.Path(folder)
    base = os.environ.get("XDG_CACHE_HOME")
    home = pathlib.Path(base) if base else pathlib.Path.home() / ".cache"
    return home / "bastile"


def open_log(gpu: str):
    """What was measured and found for a model of GPU; without a folder, by this
    process."""
    folder = cache_folder()
    if folder is None:
        return _in_memory.setdefault(gpu, MemoryLog())
    return Log(folder / "tuning" / f"{keys.slug(gpu)}.jsonl")


def clear() -> None:
    """Removes all logs."""
    _in_memory.clear()
    folder = cache_folder()
    if folder is None:
        return
    for path in (folder / "tuning").glob("*.*"):
        if path.suffix in (".jsonl", ".lock"):
            path.unlink(missing_ok=True)


class MemoryLog:
    """Records that end with the process."""

    path = None

    def __init__(self):
        self._records = []

    def append(self, record: dict) -> None:
        self._records.append(record)

    def records(self) -> list:
        return list(self._records)


_in_memory: dict = {}


class Log:
    """Records, each on a line of its own.

    A record is written by one call as soon as it is known, so a process that is
    killed loses nothing that it appended, and several may append at once.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def append(self, record: dict) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = json.dumps(record, sort_keys=True) + "\n"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        file = os.open(self.path, flags, 0o600)
        try:
            # What somebody was killed over must not spoil this record as well.
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                line = "\n" + line
            os.write(file, line.encode())
        finally:
            os.close(file)

    def records(self) -> list:
        """All records in the order of writing, less those that are damaged."""
        try:
            text = self.path.read_text(errors="replace")
        except OSError:
            return []
        found = []
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                found.append(record)
        return found


class Table:
    """The best schedules for one model of GPU, by key and bucket of rows."""

    def __init__(self, entries=()):
        self._entries = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: dict) -> None:
        """Takes a result in; it replaces an earlier one of its key and bucket."""
        buckets = self._entries.setdefault(entry["key"], {})
        buckets[keys.bucket(entry["rows"])] = entry

    def find(self, key: str) -> dict | None:
        """The result for the most rows.

        A kernel has one schedule for any number of rows, since a new number must
        not compile anything; time is spent where there are many.
        """
        buckets = self._entries.get(key)
        return buckets[max(buckets)] if buckets else None

    def entries(self) -> list:
        found = [
            e for buckets in self._entries.values() for e in buckets.values()
        ]
        return sorted(found, key=lambda e: (e["name"], e["key"], e["rows"]))


def user_table(gpu: str) -> Table:
    """What was tuned on this machine."""
    records = open_log(gpu).records()
    return Table(
        record
        for record in records
        if record.get("kind") == "best"
        and {"key", "name", "rows", "schedule"} <= set(record)
    )


def shipped_table(gpu: str) -> Table:
    """What came with the package."""
    file = importlib.resources.files("bastile").joinpath(
        "tuning", f"{keys.slug(gpu)}.json"
    )
    if not file.is_file():
        return Table()
    return read_table(file)


def read_table(file) -> Table:
    return Table(json.loads(file.read_text())["entries"])


def write_table(path, gpu: str, version: str, entries) -> None:
    document = {"gpu": gpu, "bastile": version, "entries": list(entries)}
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(document, indent=1) + "\n")
    partial.replace(path)
