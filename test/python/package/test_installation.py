# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Another project's distribution of the name bastile in the same folder is told."""

import pathlib
import subprocess
import sys

import bastile
import pytest

PACKAGE = pathlib.Path(bastile.__file__).parent


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bastile").symlink_to(PACKAGE)
    (tmp_path / "bastile_mlir-0.1.0.dist-info").mkdir()
    return tmp_path


@pytest.mark.parametrize("kind", ["dist-info", "egg-info"])
@pytest.mark.parametrize("arguments", [["-c", "import bastile"], ["-m", "bastile"]])
def test_the_other_distribution_is_refused(folder, kind, arguments):
    (folder / f"bastile-0.1.3.{kind}").mkdir()
    result = run(folder, *arguments)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("ImportError: the distribution 'bastile'")
    assert "pip uninstall bastile bastile-mlir" in last


def test_its_own_distribution_is_none_of_that(folder):
    (folder / "bastile-tools").mkdir()
    assert run(folder, "-c", "import bastile").returncode == 0


def test_metadata_has_the_name_that_messages_install():
    root = pathlib.Path(__file__).resolve().parents[3]
    assert 'name = "bastile-mlir"' in (root / "pyproject.toml").read_text()
    named = [root / "README.md", *root.glob("docs/*.md")]
    for folder in ("python", "benchmarks", "examples"):
        named += root.glob(f"{folder}/**/*.py")
    for path in named:
        assert "bastile[" not in path.read_text(), path
