# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The command line: what it prints, how it fails, what the doctor finds."""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

import bastile
import pytest
from bastile import _bastile
from bastile._commands import doctor


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "bastile", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_version():
    result = run("--version")
    assert result.returncode == 0
    llvm = _bastile.llvm_version
    assert llvm.startswith("22.")
    assert result.stdout == f"bastile {bastile.__version__} (LLVM {llvm})\n"


def test_targets():
    assert run("targets").stdout.split() == _bastile.targets()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((), "the following arguments are required: COMMAND"),
        (("docter",), "invalid choice: 'docter'"),
        (("doctor", "--all"), "unrecognized arguments: --all"),
    ],
)
def test_usage_errors_are_one_line(arguments, message):
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.startswith("bastile: error: ")
    assert result.stderr.count("\n") == 1


def test_doctor_on_a_machine_in_order(tmp_path):
    result = run("doctor", BASTILE_CACHE_DIR=str(tmp_path), CUDA_VISIBLE_DEVICES="")
    assert result.returncode == 0, result.stdout
    topics = [line.split()[0] for line in result.stdout.splitlines() if line]
    for topic in ("bastile", "llvm", "python", "system", "driver", "gpu", "torch"):
        assert topic in topics
    assert f"cache        {tmp_path}, 0 entries, 0.0 MB" in result.stdout
    assert "kernels run on the host" in result.stdout
    assert result.stdout.endswith("\nno problems found\n")


def test_doctor_fails_with_a_problem(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        result = run("doctor", BASTILE_CACHE_DIR=str(folder))
        assert result.returncode == 1
        assert f"PROBLEM: cannot open the cache folder '{folder}'" in result.stdout
        assert result.stdout.endswith("\n1 problem found\n")


def test_doctor_finds_damage_in_the_cache(tmp_path):
    (tmp_path / f"{'0' * 32}.kernel").write_text("no kernel")
    result = run("doctor", BASTILE_CACHE_DIR=str(tmp_path))
    assert result.returncode == 1
    assert "1 entries, 0.0 MB" in result.stdout
    assert "PROBLEM: 1 of them damaged" in result.stdout


def test_doctor_names_what_a_gpu_lacks_for_its_driver(monkeypatch):
    gpu = {
        "name": "H200",
        "compute_capability": 90,
        "multiprocessors": 132,
        "lacks": ["wgmma, which the driver's CUDA 12.8 compiles wrongly"],
    }
    monkeypatch.setattr(doctor._bastile, "gpu_count", lambda: 1)
    monkeypatch.setattr(doctor._bastile, "describe_gpu", lambda device: gpu)
    (finding,) = doctor.check_gpus()
    assert finding.text == (
        "H200, compute capability 9.0, 132 multiprocessors, target sm_90a; "
        "without wgmma, which the driver's CUDA 12.8 compiles wrongly"
    )
    assert not finding.problem
    # An older GPU lacks it with any driver.
    gpu["compute_capability"] = 80
    (finding,) = doctor.check_gpus()
    assert "wgmma" not in finding.text


def test_doctor_without_a_cache():
    result = run("doctor", BASTILE_CACHE="0")
    assert "cache        off" in result.stdout
    assert result.returncode == 0


@pytest.mark.parametrize(
    "number, cuda, is_old",
    [
        ("525.60.13", 12000, False),
        ("580.65.06", 13000, False),
        ("515.105.01", 11070, True),
        (None, 12000, False),
        (None, 11080, True),
    ],
)
def test_doctor_judges_the_driver(number, cuda, is_old):
    assert ("driver 525" in doctor.driver_problem(number, cuda)) == is_old


def test_doctor_judges_torch():
    assert not doctor.torch_problem("2.9.0+cu128", True, True)
    assert not doctor.torch_problem("2.13.0+cpu", False, False)
    assert "2.9 is the oldest" in doctor.torch_problem("2.8.1", True, True)
    assert "does not see the GPU" in doctor.torch_problem("2.10.0+cpu", True, False)


ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_doctor_knows_the_versions_that_tests_run_with():
    pinned = {}
    for file in ROOT.glob("scripts/requirements*.txt"):
        for line in file.read_text().splitlines():
            # Those for an older Python are there for building alone.
            found = re.fullmatch(r"([\w-]+)==([\w.]+)(; python_version >= .*)?", line)
            if found and found[1] in doctor.TESTED:
                pinned.setdefault(found[1], set()).add(found[2])
    assert pinned == {name: set(x) for name, x in doctor.TESTED.items() if x}


def test_doctor_lists_what_models_are_trained_with(monkeypatch):
    versions = {
        "transformers": "4.57.6", "trl": "1.15.0", "deepspeed": "0.18", "other": "1"
    }  # fmt: skip

    def version(name):
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = [(x.topic, x.text, x.problem) for x in doctor.check_libraries()]
    assert found == [
        ("transformers", "4.57.6, which Bastile's tests run with", ""),
        ("trl", "1.15.0, Bastile's tests run with 1.16.0", ""),
        ("deepspeed", "0.18, which no test of Bastile runs with", ""),
    ]
    assert not doctor.transformers_problem("5.0.0.dev0")
    assert "4.57 or later" in doctor.transformers_problem("4.56.2")
