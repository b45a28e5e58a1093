#!/usr/bin/env python3
"""Builds the fuzzers of test/fuzz and runs them one after the other.

    scripts/fuzz.py --seconds 600        the time of all together
    scripts/fuzz.py Pass --seconds 60    one of them
    scripts/fuzz.py --runs 20000         so many inputs each

What they learn is kept in build-fuzz/corpus, which the next run goes on from; what
crashes, hangs for 10 s or takes more than 2 GB is written to build-fuzz/found, and
the exit status is 1. docs/testing.md says what to do with it.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BASTILE_FUZZ_BUILD", ROOT / "build-fuzz"))

#: The longest input of each, and which part of the time it gets.
FUZZERS = {
    "Npy": (400, 1),
    "CacheEntry": (600, 1),
    "Metadata": (8000, 2),
    "Pass": (6000, 4),
    "Pipeline": (6000, 4),
}
#: After so many findings, a fuzzer's time is over.
MOST_FINDINGS = 20
STATISTIC = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
PEAK = re.compile(r"stat::peak_rss_mb:\s*(\d+)")


def build(names, jobs):
    if not (BUILD / "build.ninja").exists():
        # Others' caches of objects are of other flags.
        subprocess.run(
            [
                *("cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja"),
                *("-DBASTILE_FUZZ=ON", "-DBASTILE_PYTHON=OFF"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    command = ["ninja", "-C", BUILD, *(f"fuzz-{name}" for name in names)]
    if jobs:
        command += ["-j", str(jobs)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        [sys.executable, ROOT / "test/fuzz/Inputs/make-seeds.py", BUILD / "seeds"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def environment():
    # LLVM's allocators mark what they have handed out, but only where they are
    # instrumented as well.
    options = "allow_user_poisoning=0:detect_leaks=1:abort_on_error=1"
    symbolizer = "/usr/lib/llvm-22/bin/llvm-symbolizer"
    return {
        **os.environ,
        "ASAN_OPTIONS": options,
        "ASAN_SYMBOLIZER_PATH": symbolizer,
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run_once(name, longest, limits, log):
    """Runs a fuzzer until its limits or its first finding: how many inputs it
    ran, megabytes at most, and its exit status."""
    corpus, found = BUILD / "corpus" / name, BUILD / "found" / name
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    command = [
        BUILD / "bin" / f"fuzz-{name}",
        *(corpus, BUILD / "seeds" / name),
        f"-max_len={longest}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-malloc_limit_mb=2048",
        "-print_final_stats=1",
        "-close_fd_mask=1",
        f"-artifact_prefix={found}/",
        *limits,
    ]
    kept = ROOT / "test/fuzz/corpus" / name
    if kept.is_dir():
        command.insert(3, kept)
    with open(log, "ab") as file:
        status = subprocess.run(
            command, stdout=file, stderr=file, env=environment()
        ).returncode
    said = log.read_text(errors="replace")

    def last(pattern):
        found = pattern.findall(said)
        return int(found[-1]) if found else 0

    return last(STATISTIC), last(PEAK), status


def run(name, seconds, runs):
    """Runs a fuzzer, again after each finding, and prints a line about it."""
    longest, _ = FUZZERS[name]
    log = BUILD / f"fuzz-{name}.log"
    log.unlink(missing_ok=True)
    start = time.monotonic()
    done, peak, findings = 0, 0, 0
    while findings < MOST_FINDINGS:
        left = seconds - (time.monotonic() - start)
        limits = [f"-max_total_time={max(1, int(left))}"]
        if runs:
            limits = [f"-runs={runs - done}"]
        count, megabytes, status = run_once(name, longest, limits, log)
        done, peak = done + count, max(peak, megabytes)
        findings += status != 0
        is_over = done >= runs if runs else left <= 1
        if status == 0 or is_over or not count:
            break
    took = time.monotonic() - start
    print(
        f"{name:12}{done:10} inputs{took:8.0f} s{peak:7} MB{findings:5} findings",
        flush=True,
    )
    return findings


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="fuzzer")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=0, help="of the build")
    arguments = parser.parse_args()
    names = arguments.names or list(FUZZERS)
    for name in names:
        if name not in FUZZERS:
            parser.error(f"there is no fuzzer '{name}', only {', '.join(FUZZERS)}")
    build(names, arguments.jobs)
    parts = sum(FUZZERS[name][1] for name in names)
    findings = 0
    for name in names:
        seconds = arguments.seconds * FUZZERS[name][1] / parts
        findings += run(name, seconds, arguments.runs)
    if findings:
        print(f"the inputs are in {BUILD}/found, what was said in {BUILD}/fuzz-*.log")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
