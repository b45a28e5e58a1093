#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Compiles into a folder that may not be written to, as a user without rights.

Root may write anywhere, so root becomes nobody first. Where nobody may not run
the compiler either, the check is skipped with a word.
"""

import os
import shutil
import subprocess
import sys

NOBODY = 65534


def main():
    source, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o555)
    user = {}
    if os.geteuid() == 0:
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    tilec = shutil.which("tilec")
    try:
        subprocess.run(
            [tilec, source, "--emit=tile"], check=True, capture_output=True, **user
        )
    except (OSError, subprocess.CalledProcessError):
        print("skipped: nobody may not run", tilec)
        return 0
    output = os.path.join(folder, "out.ptx")
    result = subprocess.run([tilec, source, "-o", output], **user)
    assert result.returncode == 1, result
    assert not os.path.exists(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
