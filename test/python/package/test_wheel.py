# Part of Bastile, under the MIT License. See LICENSE.
"""The wheel, and the package installed from it into an environment of its own:

    build/venv/bin/python -m pytest test/python/package/test_wheel.py

BASTILE_WHEEL names a wheel to test, and BASTILE_WHEEL_PYTHON the interpreter that it is
for, by default this one. Without a wheel, one is built for that interpreter.
"""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: The oldest glibc that the wheel is for, as Red Hat's and compatible systems have it.
GLIBC = (2, 28)
#: Where the wheel is used. An environment's Python stands for the one it was made from.
PYTHON = os.environ.get("BASTILE_WHEEL_PYTHON", sys.executable)


def run(*command, **options):
    return subprocess.run(
        [str(word) for word in command],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        **options,
    ).stdout


@pytest.fixture(scope="session")
def tag():
    """CPython's version as names of wheels have it: cp311."""
    version = "import sys; print('cp%d%d' % sys.version_info[:2])"
    return run(PYTHON, "-c", version).strip()


@pytest.fixture(scope="session")
def wheel(tag):
    if "BASTILE_WHEEL" in os.environ:
        return pathlib.Path(os.environ["BASTILE_WHEEL"]).absolute()
    run(ROOT / "scripts" / "build-wheels.sh", PYTHON)
    (built,) = (ROOT / "build-wheel" / "dist").glob(f"bastile_mlir-*-{tag}-*.whl")
    return built


@pytest.fixture(scope="session")
def module(wheel, tmp_path_factory):
    """The extension module in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if ".so" in name)
        return archive.extract(name, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def bin_folder(wheel, tmp_path_factory):
    """The commands of a new environment that holds the wheel and NumPy."""
    folder = tmp_path_factory.mktemp("environment")
    run(PYTHON, "-m", "venv", folder)
    pip = [folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check"]
    run(*pip, "--no-index", wheel)
    # The wheel is complete by itself.
    run(folder / "bin" / "python", "-m", "bastile", "doctor")
    run(*pip, "numpy")
    return folder / "bin"


def test_is_small(wheel):
    assert wheel.stat().st_size <= 30_000_000


def test_is_for_common_systems(wheel, tag):
    assert wheel.name.endswith(f"-{tag}-{tag}-manylinux_2_28_x86_64.whl")
    auditwheel = pathlib.Path(sys.executable).with_name("auditwheel")
    shown = " ".join(run(auditwheel, "show", wheel).split())
    least = re.search(r'the following platform tag: "manylinux_(\d+)_(\d+)_', shown)
    assert (int(least[1]), int(least[2])) <= GLIBC


def test_has_what_it_should_and_no_more(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (n for n in names if n.endswith(".dist-info/METADATA"))
        header = archive.read(metadata).decode().split("\n\n")[0].splitlines()
    for name in ("ops.json", "ops.pyi", "py.typed", "_bastile.pyi", "__main__.py"):
        assert f"bastile/{name}" in names
    licenses = {n.rpartition("/")[2] for n in names if "/licenses/" in n}
    assert {"LICENSE", "LLVM.txt", "pybind11.txt", "zlib.txt"} <= licenses
    folders = {name.partition("/")[0].partition("-")[0] for name in names}
    assert folders == {"bastile", "bastile_mlir"}
    assert not [name for name in names if "bench" in name]
    assert any(name.startswith("bastile/_tuning/tables/nvidia-") for name in names)
    assert "Name: bastile-mlir" in header
    assert not [
        line
        for line in header
        if line.startswith("Requires-Dist") and "extra ==" not in line
    ]
    version = re.search(
        'VERSION "(.*)"', (ROOT / "include/bastile/Version.h").read_text()
    )
    assert f"Version: {version[1]}" in header


def test_needs_glibc_and_its_unwinder_alone(module):
    dynamic = run("readelf", "--wide", "--dynamic", module)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*?)\.so", dynamic))
    glibc = {"libc", "libm", "libdl", "libpthread", "librt", "ld-linux-x86-64"}
    assert needed <= glibc | {"libgcc_s"}
    # Until glibc 2.34 these have functions that libc has later.
    assert {"libdl", "libpthread"} <= needed
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", module))
    assert max((int(major), int(minor)) for major, minor in versions) <= GLIBC
    # glibc reads packed relocations from 2.36 on.
    assert "RELR" not in dynamic


def test_shows_nothing_to_other_libraries(module):
    symbols = run("nm", "--dynamic", "--defined-only", module).splitlines()
    assert [symbol.split()[-1] for symbol in symbols] == ["PyInit__bastile"]


USE = """
import importlib.util, pathlib
import bastile, numpy

assert importlib.util.find_spec("torch") is None
rng = numpy.random.default_rng(0)
x, weight = (rng.standard_normal(s).astype("float32") for s in ((5, 96), 96))
shapes = {"input": (5, 96), "weight": (96,)}
kernel = bastile.compile("rms_norm", shapes, dtype="f32", eps=0.0, grad=True)
expected = x / numpy.sqrt((x * x).mean(-1, keepdims=True)) * weight
numpy.testing.assert_allclose(kernel(x, weight), expected, rtol=1e-5)
half = bastile.compile("softmax", (5, 96), dtype="f16")(x.astype(numpy.float16))
numpy.testing.assert_allclose(half.sum(-1, dtype=float), 1, rtol=1e-2)
kernel = bastile.compile("swiglu", (5, 96), dtype="bf16", target="sm_90")
assert ".target sm_90" in kernel.ptx
maps = pathlib.Path("/proc/self/maps").read_text()
assert "libLLVM" not in maps and "libMLIR" not in maps
print(bastile.__file__)
"""


def test_compiles_and_calls(bin_folder, tmp_path):
    environment = {**os.environ, "BASTILE_CACHE_DIR": str(tmp_path / "cache")}
    file = run(bin_folder / "python", "-c", USE, cwd=tmp_path, env=environment)
    assert file.startswith(str(bin_folder.parent))


def test_command_line(bin_folder, tmp_path):
    version = run(bin_folder / "python", "-m", "bastile", "--version", cwd=tmp_path)
    assert version == run(bin_folder / "bastile", "--version", cwd=tmp_path)
    report = run(
        bin_folder / "bastile",
        "doctor",
        cwd=tmp_path,
        env={**os.environ, "BASTILE_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert re.search("^torch +none$", report, re.M)
    assert "no problems found" in report
