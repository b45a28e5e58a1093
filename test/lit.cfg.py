# Part of Bastile, under the MIT License. See LICENSE.

import ctypes
import math
import os
import shutil
import sys
import time

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = lit_config.params.get(
    "build", os.environ.get("BASTILE_BUILD", os.path.join(root, "build"))
)
llvm = "/usr/lib/llvm-22"
if os.environ.get("MLIR_DIR"):
    llvm = os.path.abspath(os.path.join(os.environ["MLIR_DIR"], *[os.pardir] * 3))

if not os.path.exists(os.path.join(build, "bin", "tile-opt")):
    lit_config.fatal(f"no tile-opt in {build}/bin: run `make` first")

config.name = "Bastile"
# CI runs as many of the long tests as it has time for. lit pickles the format for its
# workers, so it is a module's class.
sys.path.insert(0, os.path.join(root, "test"))
import forked_pytest  # noqa: E402
from deadline import ShTestUntil  # noqa: E402

seconds = float(os.environ.get("BASTILE_TEST_SECONDS", math.inf))
config.test_format = ShTestUntil(time.time() + seconds)
config.suffixes = [".mlir", ".test", ".py"]
config.excludes = ["CMakeLists.txt", "Inputs", "corpus"]
config.excludes += ["conftest.py", "deadline.py", "forked_pytest.py", "lit.cfg.py"]
# It builds the compiler once more, for ten minutes: a step of .ci/steps.
config.excludes.append("test_wheel.py")
# Numbers that take minutes, of ops that other tests have as well: likewise.
config.excludes.append("long")
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), os.path.join(llvm, "bin"), os.environ["PATH"]]
)
config.environment["BASTILE_BUILD"] = build
# There are as many tests at a time as cores. Threads of PyTorch that wait for a core
# which another test has spin, for a third of all tests' time.
config.environment["OMP_NUM_THREADS"] = "1"
for name in (
    "HOME",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "BASTILE_TEST_LONG",
):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# Debian's own Python is the one that Debian's numpy and pytest belong to.
python = os.environ.get("BASTILE_PYTHON", "/usr/bin/python3")
package_python = os.path.join(build, "venv", "bin", "python")
# One cache for all: every fifth kernel is one that another file has, too.
cache = f"BASTILE_CACHE_DIR={config.test_exec_root}/cache"
package_environment = f"env PYTHONPATH={build}/python {cache}"
forked = f"{package_python} -m pytest"
if os.path.exists(package_python):
    socket = forked_pytest.start(package_python, config.environment)
    forked = f"{python} {forked_pytest.__file__} {socket}"
config.substitutions += [
    ("%root", root),
    ("%build", build),
    ("%llvm", llvm),
    ("%lit", os.path.abspath(sys.argv[0])),
    ("%python", python),
    ("%pytest", f"{python} -m pytest -q -p no:cacheprovider"),
    # The package is tested in the environment that it was built for.
    ("%package-test", f"{package_environment} {forked} -q -p no:cacheprovider"),
    (
        "%transformers4-test",
        f"env PYTHONPATH={build}/transformers-4:{build}/python {cache} "
        f"{package_python} -m pytest -q -p no:cacheprovider",
    ),
]


def has_cuda_device():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return (
        cuda.cuInit(0) == 0
        and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
        and count.value > 0
    )


if has_cuda_device():
    config.available_features.add("cuda")

if shutil.which("ptxas", path=config.environment["PATH"]):
    config.available_features.add("ptxas")
