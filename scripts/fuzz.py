#!/usr/bin/env python3
# Part of Bastile, under the MIT License. See LICENSE.
"""Builds the fuzzers of test/fuzz and runs them one after the other.

    scripts/fuzz.py --seconds 600        for 600 s in all
    scripts/fuzz.py Pass --seconds 60    one fuzzer alone
    scripts/fuzz.py --runs 20000         20000 inputs for each fuzzer
    scripts/fuzz.py --plain              without sanitizers and assertions

Inputs that led to something new are kept in build-fuzz/corpus, where the next run goes
on. An input that crashes, hangs for 30 s or takes more than 2 GB is written to
build-fuzz/found, and the exit status is 1. A fuzzer that goes on for far longer than it
was told to is ended, which counts as a finding as well. With --plain, the fuzzers are
those of the ordinary build, in its folder. docs/testing.md says what to do with findings.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SANITIZED = pathlib.Path(os.environ.get("BASTILE_FUZZ_BUILD", ROOT / "build-fuzz"))
PLAIN = pathlib.Path(os.environ.get("BASTILE_BUILD", ROOT / "build"))

#: The longest input of each fuzzer, and its part of the time.
FUZZERS = {
    "Npy": (400, 1),
    "CacheEntry": (600, 1),
    "Metadata": (8000, 2),
    "Pass": (6000, 4),
    "Pipeline": (6000, 4),
}
#: The fuzzers that run the compiler.
COMPILERS = {"Pass", "Pipeline"}
#: The seconds that a fuzzer has beyond its part of the time, or for its inputs if their
#: number is given: a start, the longest input, and what each input may take on average.
#: With sanitizers, an input takes ten times as long as without.
START_SECONDS, INPUT_SECONDS, PLAIN_INPUT_SECONDS = 120, 1, 0.1
#: The number of findings after which a fuzzer stops.
MOST_FINDINGS = 20
STATISTIC = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
PEAK = re.compile(r"stat::peak_rss_mb:\s*(\d+)")


def build(folder, names, jobs):
    """Builds fuzzers in `folder`, and their first inputs."""
    if folder == SANITIZED and not (folder / "build.ninja").exists():
        # Caches of objects made with other flags are of no use here.
        subprocess.run(
            [
                *("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja"),
                *("-DBASTILE_FUZZ=ON", "-DBASTILE_PYTHON=OFF"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    command = ["ninja", "-C", folder, *(f"fuzz-{name}" for name in names)]
    if jobs:
        command += ["-j", str(jobs)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def make_seeds(folder):
    subprocess.run(
        [sys.executable, ROOT / "test/fuzz/Inputs/make-seeds.py", folder / "seeds"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def environment():
    # LLVM's allocators mark the memory that they have handed out, but only
    # where they are instrumented as well.
    options = "allow_user_poisoning=0:detect_leaks=1:abort_on_error=1"
    symbolizer = "/usr/lib/llvm-22/bin/llvm-symbolizer"
    return {
        **os.environ,
        "ASAN_OPTIONS": options,
        "ASAN_SYMBOLIZER_PATH": symbolizer,
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run_limited(command, file, seconds):
    """Runs a command and returns its exit status, None if it took longer than `seconds`
    and was ended: a fuzzer that hangs while it reports a crash heeds no signal of its
    own."""
    try:
        return subprocess.run(
            command, stdout=file, stderr=file, env=environment(), timeout=seconds
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def run_once(program, folder, longest, limits, most_seconds, log):
    """Runs a fuzzer until its limits or its first finding. Returns how many inputs
    it ran, the most megabytes that it took, and its exit status, None if it was ended
    after `most_seconds`."""
    name = program.name.removeprefix("fuzz-")
    corpus, found = folder / "corpus" / name, folder / "found" / name
    for made in (corpus, found):
        made.mkdir(parents=True, exist_ok=True)
    command = [
        program,
        *(corpus, folder / "seeds" / name),
        f"-max_len={longest}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-malloc_limit_mb=2048",
        "-print_final_stats=1",
        "-close_fd_mask=1",
        f"-artifact_prefix={found}/",
        *limits,
    ]
    if name in COMPILERS:
        # These fuzzers have a limit of their own, on processor time. A mutated
        # module that is mutated again is hardly a module any more.
        command += ["-timeout=100", "-mutate_depth=1"]
    kept = ROOT / "test/fuzz/corpus" / name
    if kept.is_dir():
        command.insert(3, kept)
    with open(log, "ab") as file:
        status = run_limited(command, file, most_seconds)
    said = log.read_text(errors="replace")
    # libFuzzer writes nothing of an input that ends the process while it is made; the
    # fuzzer writes it itself.
    for finding in found.iterdir():
        if not finding.stat().st_size:
            finding.unlink()

    def last(pattern):
        found = pattern.findall(said)
        return int(found[-1]) if found else 0

    return last(STATISTIC), last(PEAK), status


def run(program, folder, seconds, options):
    """Runs a fuzzer, again after each finding, and prints a line about it."""
    name = program.name.removeprefix("fuzz-")
    longest, _ = FUZZERS[name]
    log = folder / f"fuzz-{name}.log"
    log.unlink(missing_ok=True)
    runs, start = options.runs, time.monotonic()
    done, peak, findings = 0, 0, 0
    while findings < MOST_FINDINGS:
        left = seconds - (time.monotonic() - start)
        limits = [f"-max_total_time={max(1, int(left))}"]
        most_seconds = START_SECONDS + max(1, left)
        if runs:
            limits = [f"-runs={runs - done}"]
            each = PLAIN_INPUT_SECONDS if options.plain else INPUT_SECONDS
            most_seconds = START_SECONDS + (runs - done) * each
        if options.seed:
            limits.append(f"-seed={options.seed + findings}")
        count, megabytes, status = run_once(
            program, folder, longest, limits, most_seconds, log
        )
        if status is None:
            print(f"{name} was ended: it ran for more than {most_seconds:.0f} s")
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
    parser.add_argument("--seed", type=int, default=0, help="0: another each time")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--jobs", type=int, default=0, help="of the build")
    options = parser.parse_args()
    names = options.names or list(FUZZERS)
    for name in names:
        if name not in FUZZERS:
            parser.error(f"there is no fuzzer '{name}', only {', '.join(FUZZERS)}")
    binaries = PLAIN if options.plain else SANITIZED
    folder = PLAIN / "fuzz" if options.plain else SANITIZED
    build(binaries, names, options.jobs)
    make_seeds(folder)
    parts = sum(FUZZERS[name][1] for name in names)
    findings = 0
    for name in names:
        seconds = options.seconds * FUZZERS[name][1] / parts
        findings += run(binaries / "bin" / f"fuzz-{name}", folder, seconds, options)
    if findings:
        print(f"the inputs are in {folder}/found, what was said in {folder}/fuzz-*.log")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
