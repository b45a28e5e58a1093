# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The source distribution, and the package's page that it has like a wheel."""

import os
import pathlib
import re
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
REPOSITORY = "https://example.org/bastile/blob/main"

BUILD = """
import sys
import scikit_build_core.build
print(scikit_build_core.build.build_sdist(sys.argv[1]))
"""


def build(folder, repository):
    """The names in a source distribution built into ``folder``, and its metadata."""
    environment = {**os.environ, "BASTILE_REPOSITORY": repository}
    command = [sys.executable, "-c", BUILD, str(folder)]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, text=True, capture_output=True, check=True
    )
    with tarfile.open(folder / ran.stdout.split()[-1]) as archive:
        archive.extractall(folder)
        names = [name.partition("/")[2] for name in archive.getnames()]
    (info,) = folder.glob("*/PKG-INFO")
    return names, info.read_text()


@pytest.fixture(scope="module")
def distribution(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    return folder, *build(folder, REPOSITORY)


def test_has_what_a_build_reads_and_no_build(distribution):
    _, names, info = distribution
    assert {
        "CMakeLists.txt",
        "LICENSE",
        "README.md",
        "dialect/TileOps.td",
        "include/bastile/Version.h",
        "python/bastile/__init__.py",
        "python/wheel/package_page.py",
        "scripts/setup.sh",
    } <= set(names)
    assert not [name for name in names if name.startswith(("build", ".git/"))]
    assert "Name: bastile-mlir\n" in info


def links(text):
    return re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", text, flags=re.S))


def test_links_of_the_page_are_absolute_and_exist(distribution):
    _, _, info = distribution
    found = links(info)
    own = [x for x in found if x.startswith(REPOSITORY)]
    assert len(own) > 15
    assert all(re.match("https://", link) for link in found)
    for link in own:
        file = link.removeprefix(REPOSITORY).strip("/").partition("#")[0]
        assert (ROOT / file).exists(), link
    assert f"]({REPOSITORY}/README.md#whole-models)" in info


def test_page_has_no_links_into_a_repository_that_nobody_named(tmp_path):
    _, info = build(tmp_path, "")
    assert all(re.match("https://", link) for link in links(info))
    # What stood in a link stays as text.
    assert "with two lines," in " ".join(info.split())
    assert "[docs/models.md]" not in info and "docs/models.md" in info


def test_install_without_llvm_says_what_to_install(distribution, tmp_path):
    folder, _, _ = distribution
    (source,) = folder.glob("bastile_mlir-*/")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
    ]
    command += ["--config-settings", "cmake.define.CMAKE_DISABLE_FIND_PACKAGE_MLIR=ON"]
    ran = subprocess.run(
        [*command, "-w", str(tmp_path), str(source)], text=True, capture_output=True
    )
    assert ran.returncode
    output = " ".join((ran.stdout + ran.stderr).split())
    assert "Bastile is built with MLIR 22, which is not there" in output
    assert "apt-get install llvm-22-dev libmlir-22-dev" in output
