# Part of Bastile, under the MIT License. See LICENSE.
"""What the package says of its work, by Python's `logging`.

The logger is ``bastile``, with a child for each `Channel`. Programs set levels and
handlers as for any other package. For those that do not, BASTILE_LOG=info or debug
prints to standard error.

`logging` takes longer to import than other parts of the package. Where nobody has
imported it, nobody listens, and nothing is said.
"""

import os
import sys
import warnings
from typing import Any

_LEVELS = ("info", "debug")
_OFF = ("", "0", "off")


class Channel:
    """Messages of one part of the package, which is ``name``.

    Texts have their values' places as `logging` has them. What takes long to compute
    is computed where `wants_info` or `wants_debug` says that somebody listens. Code
    that runs at each call of a kernel, or that torch.compile traces, says nothing.
    """

    def __init__(self, name: str) -> None:
        self._name = f"bastile.{name}"

    def info(self, text: str, *values: Any) -> None:
        self._say("INFO", text, values)

    def debug(self, text: str, *values: Any) -> None:
        self._say("DEBUG", text, values)

    def wants_info(self) -> bool:
        return self._wants("INFO")

    def wants_debug(self) -> bool:
        return self._wants("DEBUG")

    def _wants(self, level):
        logging = sys.modules.get("logging")
        return logging is not None and logging.getLogger(self._name).isEnabledFor(
            getattr(logging, level)
        )

    def _say(self, level, text, values):
        logging = sys.modules.get("logging")
        if logging is not None:
            logger = logging.getLogger(self._name)
            logger.log(getattr(logging, level), text, *values, stacklevel=3)


def read_environment() -> None:
    """Prints what BASTILE_LOG asks for. The program's own handlers are given nothing
    then, so that no line comes twice."""
    wanted = os.environ.get("BASTILE_LOG", "").lower()
    if wanted in _OFF:
        return
    if wanted not in _LEVELS:
        warnings.warn(
            f"BASTILE_LOG={wanted} is none of {', '.join(_LEVELS)}, and nothing is "
            "logged",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    import logging

    logger = logging.getLogger("bastile")
    handler = logging.StreamHandler()
    # Of several processes of a job, a line says which one it is of.
    rank = os.environ.get("RANK")
    own = f" [rank {rank}]" if rank else ""
    handler.setFormatter(
        logging.Formatter(f"%(asctime)s %(name)s{own}: %(message)s", "%H:%M:%S")
    )
    logger.addHandler(handler)
    logger.setLevel(wanted.upper())
    logger.propagate = False


read_environment()
