# Part of Bastile, under the MIT License. See LICENSE.
"""``bastile cache``: the kernel cache on disk.

`bastile cache export` on one machine and `import` on the others give a cluster a
warm cache: an entry says what it was made of, so nothing that does not fit is used.
"""

import contextlib
import io
import os
import tarfile
import time

from bastile import _bastile


def register(commands) -> None:
    summary = "list, clear, check or move the kernel cache on disk"
    parser = commands.add_parser("cache", help=summary, description=summary)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="show the entries, last used first")
    actions.add_parser("clear", help="remove all entries")
    actions.add_parser("verify", help="check all entries, drop damaged ones")
    for name, help in (
        ("export", "write all entries to a tar archive"),
        ("import", "add the entries of an archive"),
    ):
        action = actions.add_parser(name, help=help)
        action.add_argument("archive", help="the archive's path")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    """Carries out a subcommand; returns the exit status."""
    folder = _bastile.cache_folder()
    if not folder:
        raise RuntimeError("the cache on disk is switched off (BASTILE_CACHE_DIR)")
    if arguments.action in ("export", "import"):
        action = _export if arguments.action == "export" else _import
        return action(arguments.archive)
    return {"list": _list, "clear": _clear, "verify": _verify}[arguments.action]()


def _size(count):
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _list():
    entries = _bastile.cache_list()
    for entry in entries:
        used = time.strftime("%Y-%m-%d", time.localtime(entry["last_used"]))
        parts = entry["parts"]
        what = entry["problem"] or " ".join(
            filter(
                None,
                (
                    parts.get("kind"),
                    entry["name"],
                    parts.get("target") or parts.get("gpu"),
                    parts.get("gradients") and f"grad {parts['gradients']}",
                    parts.get("schedule"),
                ),
            )
        )
        print(f"{entry['file'][:12]}  {used}  {_size(entry['bytes']):>8}  {what}")
    total = sum(entry["bytes"] for entry in entries)
    print(f"{len(entries)} entries, {_size(total)}, in {_bastile.cache_folder()}")
    return 0


def _clear():
    count, bytes = _bastile.cache_clear()
    print(f"removed {count} entries, {_size(bytes)}")
    return 0


def _verify():
    intact, damaged = _bastile.cache_verify()
    for file, problem, removed in damaged:
        print(f"{file}: {problem}{'; removed' if removed else ''}")
    print(f"{intact} entries are intact, {len(damaged)} were not")
    return 1 if damaged else 0


def _export(path):
    # An archive that cannot be written as a whole leaves what was there.
    partial = f"{path}.partial"
    try:
        count = _write(partial)
        os.replace(partial, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(partial)
        raise OSError(error.errno, error.strerror, path) from None
    print(f"wrote {count} entries to {path}")
    return 0


def _write(path):
    count = 0
    with tarfile.open(path, "w") as archive:
        for entry in _bastile.cache_list():
            if entry["problem"]:
                continue
            contents = _bastile.cache_export(entry["file"])
            member = tarfile.TarInfo(entry["file"])
            member.size = len(contents)
            archive.addfile(member, io.BytesIO(contents))
            count += 1
    return count


def _import(path):
    added = known = refused = 0
    with _open(path) as archive:
        for member in _members(archive, path):
            try:
                if not member.isfile():
                    raise RuntimeError("not a file")
                contents = archive.extractfile(member).read()
                if _bastile.cache_import(member.name, contents):
                    added += 1
                else:
                    known += 1
            except (RuntimeError, tarfile.TarError) as error:
                print(f"{member.name}: {error}")
                refused += 1
    print(f"added {added} entries; {known} were there, {refused} refused")
    return 1 if refused else 0


def _open(path):
    try:
        return tarfile.open(path)
    except tarfile.TarError:
        raise RuntimeError(
            f"'{path}' is no tar archive, as 'cache export' writes"
        ) from None


def _members(archive, path):
    """The members, up to where the archive breaks off. A whole one ends in zeros."""
    try:
        yield from archive
    except tarfile.TarError as error:
        raise RuntimeError(f"'{path}' is damaged: {error}") from None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise RuntimeError(f"'{path}' is cut off: what comes last is missing")
