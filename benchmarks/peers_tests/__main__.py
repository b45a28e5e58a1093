# Part of Bastile, under the MIT License. See LICENSE.
"""``python -m peers_tests SUITE CHECKOUT``: runs a peer's tests with Bastile's
functions in the place of its own (docs/peers-tests.md)."""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import time
from typing import Any

from peers_tests import report, selection, shards, texts


def main() -> int:
    parser = argparse.ArgumentParser(prog="peers_tests", description=__doc__)
    parser.add_argument("suite", choices=sorted(selection.FILES))
    parser.add_argument(
        "checkout", type=pathlib.Path, help="the peer's repository, with its tests"
    )
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("peers-tests"))
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="how many run side by side, on one GPU (by default one a core)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=3600,
        help="for all of it; what is there counts",
    )
    parser.add_argument(
        "-k",
        dest="keyword",
        default="",
        help="pytest's expression for names of tests; the others are not there",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the tests that an earlier run into the folder did not reach",
    )
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="read 'cuda' in QuACK's tests as 'cpu', to try them without a GPU",
    )
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    for name in selection.FILES[options.suite]:
        if not (checkout / name).exists():
            parser.error(f"{checkout} has no {name}")
    folder = options.out.resolve() / f"results-{options.suite}"
    if folder.exists() and not (folder / "run").exists():
        parser.error(f"{folder} was not written by this command")
    earlier = {}
    if options.resume and (folder / "results.json").exists():
        earlier = json.loads((folder / "results.json").read_text())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "run").write_text(" ".join(sys.argv[1:]) + "\n")
    if options.cpu and options.suite == "quack":
        checkout = on_cpu(checkout, folder / "checkout")
    made = ""
    if options.suite == "liger-convergence" and not texts.are_there(checkout):
        made = str(folder / "texts")
        texts.write(checkout, pathlib.Path(made))
    end = time.monotonic() + options.seconds
    what = shards.Run(
        *(options.suite, checkout, folder),
        *(options.processes, options.seconds, options.keyword, made),
        frozenset(test for test, x in earlier.items() if x["outcome"] in _REACHED),
    )
    results = earlier | shards.run(what)
    crowded = {test for test, x in results.items() if has_lacked_memory(x)}
    if crowded:
        left = end - time.monotonic()
        alone = dataclasses.replace(what, processes=1, seconds=left)
        results |= shards.run(alone, crowded)
    (folder / "results.json").write_text(json.dumps(results, indent=1, sort_keys=True))
    text = report.write(options.suite, results)
    (folder / "summary.txt").write_text(text + "\n")
    print(text)
    return 1 if report.summary(options.suite, results)["new misses"] else 0


_REACHED = "passed", "failed", "skipped"


def has_lacked_memory(result: dict[str, Any]) -> bool:
    """Whether a test failed for want of memory, which others may have taken."""
    message = result.get("message", "").lower()
    return result["outcome"] == "failed" and "out of memory" in message


#: What QuACK's tests ask of a GPU, and what stands there instead without one.
_ON_CPU = {
    '"cuda"': '"cpu"',
    "torch.cuda.is_available()": "True",
    "torch.cuda.get_device_capability()": "(9, 0)",
    "torch.cuda.synchronize()": "None",
    "torch.cuda.empty_cache()": "None",
    "torch.cuda.mem_get_info()": "(0, 0)",
}


def on_cpu(checkout: pathlib.Path, copy: pathlib.Path) -> pathlib.Path:
    """A copy of QuACK's tests that run on the CPU, in ``copy``."""
    shutil.copytree(checkout / "quack", copy / "quack")
    (copy / "tests").mkdir()
    for name in selection.FILES["quack"]:
        text = (checkout / name).read_text()
        for there, here in _ON_CPU.items():
            text = text.replace(there, here)
        (copy / name).write_text(text)
    return copy


if __name__ == "__main__":
    sys.exit(main())
