# Part of Bastile, under the MIT License. See LICENSE.
"""``bastile doctor``: what the package finds on this machine.

Each check below looks at one thing and yields findings. A finding with a problem
makes the command fail; the absence of a GPU is none, since kernels run on the
host as well.
"""

import ctypes
import dataclasses
import importlib.metadata
import importlib.resources
import importlib.util
import os
import pathlib
import platform
import sys

from bastile import __version__, _bastile

#: The oldest driver of NVIDIA that is supported, and the CUDA that it brings.
_OLDEST_DRIVER, _OLDEST_CUDA = 525, 12000
_OLDEST_TORCH = (2, 9)
_OLDEST_TRANSFORMERS = (4, 57)

#: What models come from and are trained with, and the versions that Bastile's tests run
#: with (scripts/requirements*.txt); of some, none.
TESTED = {
    "transformers": ("4.57.6", "5.23.0"),
    "trl": ("1.16.0",),
    "peft": ("0.21.2",),
    "accelerate": ("1.15.0",),
    "deepspeed": (),
    "liger-kernel": (),
}


@dataclasses.dataclass
class Finding:
    topic: str
    text: str
    #: What is wrong and what to do about it; empty if nothing is.
    problem: str = ""


def register(commands) -> None:
    summary = "show what is found on this machine, and what is wrong with it"
    parser = commands.add_parser("doctor", help=summary, description=summary)
    parser.set_defaults(run=run)


def run(options) -> int:
    findings = [finding for check in CHECKS for finding in check()]
    for finding in findings:
        print(f"{finding.topic:<12} {finding.text}")
        if finding.problem:
            print(f"{'':<12} PROBLEM: {finding.problem}")
    problems = sum(bool(finding.problem) for finding in findings)
    print(f"\n{problems or 'no'} problem{'' if problems == 1 else 's'} found")
    return 1 if problems else 0


def check_package():
    yield Finding("bastile", f"{__version__} in {pathlib.Path(__file__).parents[1]}")
    targets = ", ".join(_bastile.targets())
    yield Finding("llvm", f"{_bastile.llvm_version}, for {targets}")
    yield Finding("python", f"{platform.python_version()}, {sys.executable}")
    library, version = platform.libc_ver()
    yield Finding(
        "system",
        f"{platform.system()} {platform.release()}, {platform.machine()}, "
        f"{library} {version}",
    )


def check_driver():
    try:
        cuda = _bastile.driver_version()
    except RuntimeError as error:
        yield Finding("driver", f"none ({error})")
        return
    number = _driver_number()
    yield Finding(
        "driver",
        f"{number or 'of unknown version'}, with CUDA {_dotted(cuda)}",
        driver_problem(number, cuda),
    )


def driver_problem(number, cuda):
    """What is wrong with driver ``number`` ("580.65.06", or ``None`` where that
    is unknown), which brings CUDA ``cuda`` (12040 for 12.4)."""
    is_old = (
        int(number.partition(".")[0]) < _OLDEST_DRIVER
        if number
        else cuda < _OLDEST_CUDA
    )
    if not is_old:
        return ""
    return f"kernels are made for driver {_OLDEST_DRIVER} and later; install one"


def _driver_number():
    """The driver's own version; ``None`` where its management library is not."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    text = ctypes.create_string_buffer(96)
    if library.nvmlInit_v2() != 0:
        return None
    status = library.nvmlSystemGetDriverVersion(text, len(text))
    library.nvmlShutdown()
    return text.value.decode() if status == 0 else None


def _dotted(cuda):
    return f"{cuda // 1000}.{cuda % 1000 // 10}"


def check_gpus():
    count = _bastile.gpu_count()
    if not count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hidden = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible})"
        yield Finding("gpu", f"none{hidden}: kernels run on the host")
    for device in range(count):
        topic = f"gpu {device}"
        try:
            gpu = _bastile.describe_gpu(device)
        except RuntimeError as error:
            yield Finding(topic, "not usable", str(error))
            continue
        target = _bastile.find_target(gpu["compute_capability"])
        yield Finding(
            topic,
            _describe_gpu(gpu, target),
            "" if target else "kernels need compute capability 8.0 or more",
        )


def _describe_gpu(gpu, target):
    major, minor = divmod(gpu["compute_capability"], 10)
    text = (
        f"{gpu['name']}, compute capability {major}.{minor}, "
        f"{gpu['multiprocessors']} multiprocessors, target {target or 'none'}"
    )
    # A GPU that could have it lacks it for its driver.
    if (major, minor) == (9, 0):
        text += "".join(f"; without {feature}" for feature in gpu["lacks"])
    return text


def check_torch():
    if importlib.util.find_spec("torch") is None:
        yield Finding("torch", "none")
        return
    try:
        import torch
    except Exception as error:
        yield Finding("torch", "installed", f"it cannot be imported: {error}")
        return
    cuda = torch.version.cuda
    yield Finding(
        "torch",
        f"{torch.__version__}, {f'with CUDA {cuda}' if cuda else 'without CUDA'}",
        torch_problem(
            str(torch.__version__),
            _bastile.gpu_count() > 0,
            torch.cuda.is_available(),
        ),
    )


def torch_problem(version, has_gpu, sees_gpu):
    """What is wrong with PyTorch ``version``, given whether there is a GPU and
    whether PyTorch sees one."""
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_TORCH:
        oldest = ".".join(map(str, _OLDEST_TORCH))
        return f"PyTorch {oldest} is the oldest that is supported; install a newer one"
    if has_gpu and not sees_gpu:
        return "it does not see the GPU; install a build for this driver's CUDA"
    return ""


def check_libraries():
    for name in TESTED:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        # Nothing is imported for its version: some of these take seconds.
        yield Finding(
            name,
            f"{version}, {_tested_text(version, TESTED[name])}",
            transformers_problem(version) if name == "transformers" else "",
        )


def _tested_text(version, tested):
    if version in tested:
        return "which Bastile's tests run with"
    if not tested:
        return "which no test of Bastile runs with"
    return f"Bastile's tests run with {' and '.join(tested)}"


def transformers_problem(version):
    """What is wrong with Transformers ``version``."""
    if tuple(int(part) for part in version.split(".")[:2]) >= _OLDEST_TRANSFORMERS:
        return ""
    oldest = ".".join(map(str, _OLDEST_TRANSFORMERS))
    return f"bastile.apply needs Transformers {oldest} or later; install a newer one"


def check_cache():
    folder = _bastile.cache_folder()
    if not folder:
        yield Finding("cache", "off: every process compiles")
        return
    try:
        entries = _bastile.cache_list()
    except RuntimeError as error:
        yield Finding("cache", folder, str(error))
        return
    damaged = sum(bool(entry["problem"]) for entry in entries)
    problem = (
        f"{damaged} of them damaged; bastile cache verify removes what is"
        if damaged
        else _write_problem(pathlib.Path(folder).absolute())
    )
    size = sum(entry["bytes"] for entry in entries) / 1e6
    yield Finding("cache", f"{folder}, {len(entries)} entries, {size:.1f} MB", problem)


def _write_problem(folder):
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if os.access(there, os.W_OK | os.X_OK):
        return ""
    return (
        f"{there} cannot be written to, so that every process compiles; set "
        "BASTILE_CACHE_DIR to a folder of your own"
    )


def check_tuning():
    folder = importlib.resources.files("bastile").joinpath("_tuning", "tables")
    names = (
        sorted(file.name for file in folder.iterdir() if file.name.endswith(".json"))
        if folder.is_dir()
        else []
    )
    yield Finding(
        "tuning", ", ".join(names) or "no tables: the compiler chooses schedules"
    )


#: In the order of the report.
CHECKS = [
    check_package,
    check_driver,
    check_gpus,
    check_torch,
    check_libraries,
    check_cache,
    check_tuning,
]
