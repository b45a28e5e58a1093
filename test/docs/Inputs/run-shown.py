# Part of Bastile, under the MIT License. See LICENSE.
"""Runs the commands that a document shows, in a folder.

The first block of MLIR is saved as ``attention.mlir``. Each block of ``sh`` is run, and of
a block of ``text`` behind it, each line has to stand in what the command printed, in this
order. In a line, what stands between spaces is looked for one by one.
"""

import pathlib
import re
import subprocess
import sys


def stands(shown, line):
    """Whether a line has all that is shown of it, in order."""
    parts = map(re.escape, shown.split())
    return re.search(".*?".join(parts), line) is not None


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    printed, commands, compared = "", 0, 0
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    source = next(content for kind, content in blocks if kind == "mlir")
    (folder / "attention.mlir").write_text(source)
    for kind, content in blocks:
        if kind == "sh":
            run = subprocess.run(
                ["bash", "-e", "-c", content],
                cwd=folder,
                capture_output=True,
                text=True,
            )
            if run.returncode:
                sys.exit(f"{content}failed:\n{run.stdout}{run.stderr}")
            printed, commands = run.stdout, commands + 1
        elif kind == "text":
            lines = iter(printed.splitlines())
            for shown in content.splitlines():
                if not any(stands(shown, line) for line in lines):
                    sys.exit(
                        f"the command does not print, or not in this order: {shown}"
                    )
                compared += 1
    print(f"{commands} commands, {compared} lines")


if __name__ == "__main__":
    main()
