#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Compiles each given file for every target, or those that --target names, and
assembles it with ptxas. Other arguments that start with a dash are options of tilec.

Prints one line for each, and what ptxas says where it fails, spills or makes products
of warpgroups wait for each other.
"""

import os
import re
import subprocess
import sys
import tempfile

TARGETS = ["sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120"]


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    output = result.stdout + result.stderr
    if result.returncode != 0:
        print(f"{' '.join(command)} fails:\n{output}")
    return output


def main():
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = (os.path.join(folder, name) for name in ("a.ptx", "a.cubin"))
        options = [word for word in sys.argv[1:] if word.startswith("-")]
        named = [word for word in options if word.startswith("--target=")]
        options = [word for word in options if word not in named]
        targets = [word.split("=")[1] for word in named] or TARGETS
        paths = [word for word in sys.argv[1:] if not word.startswith("-")]
        for path in paths:
            for target in targets:
                run("tilec", path, *options, f"--target={target}", "-o", ptx)
                report = run("ptxas", "-v", f"-arch={target}", ptx, "-o", cubin)
                kernels = report.count("Compiling entry function")
                spills = re.findall(r"\b[1-9][0-9]* bytes (?:spill|stack)", report)
                # Its advice on products begins with a number from C7500 on.
                if spills or re.search(r"C75\d\d|serializ", report):
                    print(report)
                print(f"{os.path.basename(path)} {target}: {kernels} kernels")


if __name__ == "__main__":
    main()
