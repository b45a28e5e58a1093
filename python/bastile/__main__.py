# Part of Bastile, under the MIT License. See LICENSE.
"""The command line: ``bastile``, or ``python -m bastile``."""

import argparse
import sys

from bastile import __version__, _bastile, _commands


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(arguments: "list[str] | None" = None) -> int:
    """Runs a command and returns its exit status."""
    parser = _Parser(
        prog="bastile",
        description="What belongs to the Bastile package of this Python.",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"bastile {__version__} (LLVM {_bastile.llvm_version})",
    )
    _commands.register(
        parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    )
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"bastile: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
