# Part of Bastile, under the MIT License. See LICENSE.
"""Whether each C++ file includes only what stands in its room or below it.

`ROOMS` is the order, lowest first. A public header belongs to the room that has the
source file of its name. Folders hold at most 25 files, so that a name is found."""

import collections
import pathlib
import re
import sys

ROOMS = (
    "include/bastile/runtime",
    "runtime",
    "runtime/metadata",
    "runtime/launch",
    "runtime/cache",
    "runtime/cuda",
    "runtime/program",
    "lib/target",
    "dialect",
    "dialect/reference",
    "passes",
    "passes/analysis",
    "passes/tensors",
    "passes/schedule",
    "passes/building",
    "passes/products",
    "passes/roles",
    "passes/crossed",
    "passes/tile",
    "passes/pieces",
    "passes/fragments",
    "passes/threads",
    "passes/math",
    "passes/target",
    "lib/codegen",
    "lib/frontend",
    "lib/driver",
    "lib/store",
    "lib/emulator/rewrite",
    "lib/emulator",
    "tools",
    "python/src",
)
#: Rooms that do not know each other, though one is named first.
APART = {("runtime/cuda", "runtime/cache"), ("passes", "dialect/reference")}
#: What these include of the folders below comes from include/.
USERS = ("tools", "python/src")
MOST_FILES = 25
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
RUNTIME = tuple(room for room in ROOMS if "runtime" in room)


def room_of(path):
    """The innermost room that a file of the tree stands in, if any."""
    for folder in path.parents:
        if folder.as_posix() in ROOMS:
            return folder.as_posix()
    return None


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = sorted(
            path.relative_to(self.root)
            for top in (
                "include",
                "runtime",
                "lib",
                "dialect",
                "passes",
                "tools",
                "python/src",
            )
            for path in (self.root / top).rglob("*")
            if path.suffix in (".cpp", ".h")
        )
        self.sources = {
            (path.stem, "runtime" in path.parts): room_of(path)
            for path in self.files
            if path.suffix == ".cpp" and path.parts[0] in ("lib", "runtime")
        }

    def find(self, including, name):
        """The file that `name` in `including` means, or None for others'."""
        for path in (
            including.parent / name,
            pathlib.Path(name),
            pathlib.Path("include", name),
        ):
            if (self.root / path).exists():
                return path
        return None

    def home(self, path):
        """The room of a file; a public header has that of its source."""
        if path.parts[0] != "include":
            return room_of(path)
        isRuntime = "runtime" in path.parts
        lowest = "include/bastile/runtime" if isRuntime else "lib/target"
        return self.sources.get((path.stem, isRuntime), lowest)

    def mistakes(self):
        for path in self.files:
            room = self.home(path)
            if room is None:
                yield f"{path} stands in no room"
                continue
            for name in INCLUDE.findall((self.root / path).read_text(encoding="utf-8")):
                found = self.find(path, name)
                other = self.home(found) if found else None
                if other is None or other == room:
                    continue
                if ROOMS.index(other) > ROOMS.index(room) or (room, other) in APART:
                    yield f"{path} of {room} includes {name} of {other}"
                elif room in RUNTIME and other not in RUNTIME:
                    yield f"{path} of the runtime includes {name} of the compiler"
                elif room in USERS and found.parts[0] in ("lib", "passes", "runtime"):
                    yield f"{path} includes {name}, which is not public"
        counts = collections.Counter(path.parent for path in self.files)
        for folder, count in counts.items():
            if count > MOST_FILES:
                yield f"{folder} has {count} files of code; {MOST_FILES} are the most"


def main():
    tree = Tree(sys.argv[1])
    found = list(tree.mistakes())
    print("\n".join([*found, f"{len(tree.files)} files, {len(found)} mistakes"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
