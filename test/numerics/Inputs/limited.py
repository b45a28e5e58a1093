# Part of Bastile, under the MIT License. See LICENSE.
"""Runs a tool under limits of processor time and memory."""

import resource
import signal
import subprocess

import runner

# This limits addresses, of which an emulator's stacks take many and use few.
MEMORY = 16 << 30
# More seconds of waiting: tests share few cores.
PATIENCE = 30


def seconds():
    """The processor time that a function may take: a gradient of attention's backward is
    a dozen kernels with products. A GPU's driver compiles the PTX in the same process,
    which takes as long again. Processes that share a core take up to twice theirs."""
    return 40 if runner.target() == "host" else 60


def run(command, source, seconds):
    """The finished process, or None if it took too long. `seconds` are of
    processor time."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        done = subprocess.run(
            command,
            input=source,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE * seconds,
            preexec_fn=limit,
        )
    except subprocess.TimeoutExpired:
        return None
    is_killed = -done.returncode in (signal.SIGXCPU, signal.SIGKILL)
    return None if is_killed else done


def largest_memory():
    """The most bytes that a process had so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
