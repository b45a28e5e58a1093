# Part of Bastile, under the MIT License. See LICENSE.
"""Logs and tables: where measurements and results are kept."""

import importlib.resources
import json
import os
import pathlib
import uuid
import warnings

from bastile import _bastile, _log
from bastile._tuning import keys, records


_channel = _log.Channel("tuning")

#: Warnings that were given already.
_warned: set = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def cache_folder() -> pathlib.Path | None:
    """The folder that compiled kernels are kept in as well (docs/cache.md);
    ``None`` where the user wants nothing on disk."""
    folder = _bastile.find_cache_folder()
    return pathlib.Path(folder) if folder else None


def open_log(gpu: str):
    """The log of a model of GPU: what was measured and found. It is one of this process
    alone where there is no cache folder, or one that others may write to."""
    folder = cache_folder()
    if folder is not None:
        log = Log(folder / "tuning" / f"{keys.slug(gpu)}.jsonl", within=folder)
        problem = log.find_problem()
        if problem is None:
            return log
        _warn_once(f"{problem}; nothing that was tuned before is known")
    return _in_memory.setdefault(gpu, MemoryLog())


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

    A schedule is code that will run, as a cached kernel is: what the cache would
    not trust is not read either.

    Args:
        path: of the file.
        within: a folder around that of the file, which has to be the user's own
            as well.
    """

    def __init__(self, path, within=None):
        self.path = pathlib.Path(path)
        self._folders = [str(within)] if within else []
        self._folders.append(str(self.path.parent))

    def open(self, flags: int, suffix: str | None = None) -> int | None:
        """A descriptor of the file, or of the one beside it with another suffix;
        ``None`` if it is missing.

        Raises ``OSError`` if somebody else may have written it.
        """
        path = self.path.with_suffix(suffix) if suffix else self.path
        try:
            return _bastile.open_private_file(self._folders, path.name, flags)
        except RuntimeError as error:
            raise OSError(str(error)) from None

    def find_problem(self) -> str | None:
        """Why the log is not to be used, if it is not."""
        try:
            file = self.open(os.O_RDONLY)
        except OSError as error:
            return str(error)
        if file is not None:
            os.close(file)
        return None

    def append(self, record: dict) -> None:
        line = json.dumps(record, sort_keys=True) + "\n"
        file = self.open(os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            # A process that was killed while it wrote may have left half of a line,
            # which must not spoil this record.
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                line = "\n" + line
            os.write(file, line.encode())
        finally:
            os.close(file)

    def records(self) -> list:
        """All records in the order of writing, less those that are damaged."""
        try:
            file = self.open(os.O_RDONLY)
            if file is None:
                return []
            with os.fdopen(file, errors="replace") as stream:
                text = stream.read()
        except OSError as error:
            _channel.info("nothing that was tuned before is known: %s", error)
            return []
        found, strange = read_records(text)
        if strange:
            _warn_once(f"lines of '{self.path}' that no tuner wrote are skipped")
        return found


def read_records(text: str) -> tuple:
    """The records in the lines of a log, and how many lines hold something else.

    What is no JSON counts as neither: a process that is killed leaves half a
    line.
    """
    found, strange = [], 0
    for line in text.split("\n"):
        try:
            record = json.loads(line)
        except RecursionError:
            strange += 1
        except ValueError:
            continue
        else:
            if records.is_record(record):
                found.append(record)
            else:
                strange += 1
    return found, strange


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
        found = [e for buckets in self._entries.values() for e in buckets.values()]
        return sorted(found, key=lambda e: (e["name"], e["key"], e["rows"]))


def user_table(gpu: str) -> Table:
    """What was tuned on this machine."""
    found = open_log(gpu).records()
    return Table(record for record in found if record.get("kind") == "best")


def shipped_table(gpu: str) -> Table:
    """What came with the package."""
    file = importlib.resources.files("bastile").joinpath(
        "_tuning", "tables", f"{keys.slug(gpu)}.json"
    )
    if not file.is_file():
        return Table()
    return read_table(file)


def read_table(file) -> Table:
    """The table that ``write_table`` wrote.

    Raises ``ValueError`` where the file holds anything else.
    """
    try:
        document = json.loads(file.read_text())
    except (ValueError, RecursionError):
        document = None
    entries = document.get("entries") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(map(records.is_entry, entries)):
        raise ValueError(f"'{file}' is no table of tuned schedules")
    return Table(entries)


def write_table(path, gpu: str, version: str, entries) -> None:
    document = {"gpu": gpu, "bastile": version, "entries": list(entries)}
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Each writer has a file of its own, so that none makes a table of what another has
    # written half of.
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        partial.write_text(json.dumps(document, indent=1) + "\n")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
