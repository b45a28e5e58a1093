#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Fails for links in Markdown files to files that are not there."""

import os
import re
import sys


def main():
    missing = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for link in re.findall(r"\]\(([^)#:%\s]+)(?:#[^)]*)?\)", text):
            if not os.path.exists(os.path.join(os.path.dirname(path), link)):
                missing.append(f"{path}: {link}")
    print("\n".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
