#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Prints the launch metadata of a PTX file, one line for each fact.

Only the first variant of each launch is printed.
"""

import json
import re
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    block = re.search(
        r"^// bastile-metadata-begin\n(.*?)^// bastile-metadata-end$",
        text,
        re.DOTALL | re.MULTILINE,
    )
    document = json.loads(re.sub(r"^// ", "", block[1], flags=re.MULTILINE))
    print("version", document["version"])
    for function in document["functions"]:
        print("function", function["name"])
        if "backward" in function:
            print("backward", json.dumps(function["backward"]))
        for kind in ("inputs", "outputs", "temporaries", "pieces"):
            for buffer in function.get(kind, []):
                print(kind, json.dumps(buffer))
        for launch in function["launches"]:
            variant = launch["variants"][0]
            line = ["launch", launch["kernel"], json.dumps(launch["operands"])]
            if "combines" in launch:
                line += ["combines", str(launch["combines"])]
            print(*line)
            print("grid", json.dumps(variant["grid"]))
            print("arguments", json.dumps(variant["arguments"]))


if __name__ == "__main__":
    main()
