# Part of Bastile, under the MIT License. See LICENSE.
"""The package's page on an index: the README, with links that work there.

scikit-build-core asks this module for the field ``readme`` (pyproject.toml).
BASTILE_REPOSITORY in the environment is the address at which the repository's files are
shown, as in ``https://host/owner/bastile/blob/v0.1.0``: links within the repository are
made to start with it. Without it they become text, since a page of an index has no files
beside it.
"""

import os
import pathlib
import re

_README = "README.md"
_LINK = re.compile(r"\[([^]\[]+)\]\(([^)\s]+)\)")


def dynamic_metadata(field: str, settings: dict) -> dict:
    """The README as ``field``, which is ``readme``."""
    if field != "readme" or settings:
        raise ValueError(f"the package's page is no {field!r} with {settings}")
    text = pathlib.Path(_README).read_text(encoding="utf-8")
    page = with_links(text, os.environ.get("BASTILE_REPOSITORY", ""))
    return {"content-type": "text/markdown", "text": page}


def with_links(text: str, repository: str) -> str:
    """``text`` with links that need nothing beside it: to ``repository`` where that is
    given. Blocks of code stay as they are."""

    def absolute(match):
        name, target = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        if not repository:
            return name
        if target.startswith("#"):
            target = _README + target
        return f"[{name}]({repository.rstrip('/')}/{target})"

    parts = re.split(r"^(```.*?^```$)", text, flags=re.M | re.S)
    # Every second part is a block of code.
    parts[::2] = [_LINK.sub(absolute, part) for part in parts[::2]]
    return "".join(parts)
