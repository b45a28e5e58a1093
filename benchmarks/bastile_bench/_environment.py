# Part of Bastile, under the MIT License. See LICENSE.
"""The machine that a measurement ran on: GPU, driver, versions, clocks."""

import importlib.metadata
import os
import platform
import shutil
import subprocess

from bastile import __version__, _bastile

#: Distributions whose versions are recorded where they are installed.
LIBRARIES = (
    "torch",
    "triton",
    "numpy",
    "transformers",
    "liger-kernel",
    "quack-kernels",
    "nvidia-cutlass-dsl",
    "flash-linear-attention",
)

# What nvidia-smi is asked: its field, our key, how its text is read.
_GPU_FIELDS = (
    ("driver_version", "driver", str),
    ("clocks.max.sm", "max_sm_clock_mhz", float),
    ("clocks.max.memory", "max_memory_clock_mhz", float),
    ("power.limit", "power_limit_w", float),
)
_STATE_FIELDS = (
    ("clocks.sm", "sm_clock_mhz", float),
    ("clocks.memory", "memory_clock_mhz", float),
    ("temperature.gpu", "temperature_c", float),
    ("power.draw", "power_w", float),
)


def describe(device: str = "cuda") -> dict:
    """What is measured on, as a flat dictionary of numbers and strings.

    ``device`` is "cpu", "cuda" or "cuda:1". Clocks are in MHz and those of the
    moment; what cannot be read is left out.
    """
    found = {
        "device": device,
        "bastile": __version__,
        "llvm": _bastile.llvm_version,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "processors": len(os.sched_getaffinity(0)),
    }
    for name in LIBRARIES:
        version = _version(name)
        if version:
            found[name.replace("-", "_")] = version
    if device != "cpu":
        found.update(_describe_gpu(device))
    return found


def state(device: str = "cuda") -> dict:
    """Clocks (MHz), temperature (Celsius) and power (watts) of the GPU now; empty
    without a GPU or its management tool."""
    return {} if device == "cpu" else _ask(_STATE_FIELDS, gpu_ordinal(device))


def gpu_ordinal(device: str) -> int:
    """The number in "cuda:1"; 0 in "cuda"."""
    return int(device.partition(":")[2] or 0)


def _describe_gpu(device):
    import torch

    ordinal = gpu_ordinal(device)
    properties = torch.cuda.get_device_properties(ordinal)
    return {
        "gpu": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "l2_bytes": properties.L2_cache_size,
        "cuda": torch.version.cuda,
        **_ask(_GPU_FIELDS, ordinal),
        **state(device),
    }


def _ask(fields, ordinal):
    """What nvidia-smi says of a GPU of this process."""
    import torch

    tool = shutil.which("nvidia-smi")
    if not tool:
        return {}
    # CUDA_VISIBLE_DEVICES renumbers GPUs; the identifier stays.
    identifier = torch.cuda.get_device_properties(ordinal).uuid
    done = subprocess.run(
        [
            tool,
            f"--id=GPU-{identifier}",
            "--query-gpu=" + ",".join(field for field, _, _ in fields),
            "--format=csv,noheader,nounits",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {}
    found = {}
    for (_, key, read), text in zip(fields, done.stdout.strip().split(",")):
        try:
            found[key] = read(text.strip())
        except ValueError:
            continue  # "[N/A]" of what this GPU does not say
    return found


def _version(name):
    if name == "torch":
        # Of the builds for several versions of CUDA, the distribution need not say
        # which one it is ("+cu130").
        try:
            import torch
        except ImportError:
            return None
        return str(torch.__version__)
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
