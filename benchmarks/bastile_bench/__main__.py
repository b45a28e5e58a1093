# Part of Bastile, under the MIT License. See LICENSE.
"""The command line: ``python -m bastile_bench``."""

import argparse
import sys

from bastile import __version__
from bastile_bench import _commands


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}; see --help\n")


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line; ``run`` of what it returns runs a command."""
    parser = _Parser(
        prog="python -m bastile_bench",
        description="Measures Bastile beside other libraries.",
    )
    parser.add_argument("--version", action="version", version=f"bastile {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for name, module in _commands.modules().items():
        summary = module.__doc__.splitlines()[0]
        command = commands.add_parser(
            name,
            help=summary[0].lower() + summary[1:].rstrip("."),
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(arguments: "list[str] | None" = None) -> int:
    """Runs a command and returns its exit status."""
    options = make_parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except KeyboardInterrupt:
        print("bastile_bench: interrupted", file=sys.stderr)
        return 130
    except FileNotFoundError as error:
        print(f"bastile_bench: error: there is no {error.filename}", file=sys.stderr)
        return 1
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        print(f"bastile_bench: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
