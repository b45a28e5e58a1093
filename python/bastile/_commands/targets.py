# Part of Bastile, under the MIT License. See LICENSE.
"""``bastile targets``: what can be compiled for."""

from bastile import _bastile


def register(commands) -> None:
    summary = "list the targets that kernels can be compiled for"
    parser = commands.add_parser("targets", help=summary, description=summary)
    parser.set_defaults(run=run)


def run(options) -> int:
    for target in _bastile.targets():
        print(target)
    return 0
