# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The kernel cache on disk as a process and the command line see it."""

import os
import subprocess
import sys
import tarfile

import pytest

PROGRAM = """
import sys, time, numpy as np, bastile
length = int(sys.argv[1])
x = np.ones((4, length), np.float32)
bastile.ops.softmax(x)
print(bastile.compilations())
"""


@pytest.fixture
def environment(tmp_path):
    return {**os.environ, "BASTILE_CACHE_DIR": str(tmp_path / "cache")}


def start(environment, length=64):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(length)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return int(output), errors


def command(environment, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "bastile", "cache", *arguments],
        env=environment,
        capture_output=True,
        text=True,
    )


def test_a_second_process_compiles_nothing(environment):
    assert finish(start(environment)) == (1, "")
    assert finish(start(environment)) == (0, "")
    assert finish(start(environment, length=65)) == (1, "")


def test_processes_that_start_at_once_compile_once(environment):
    processes = [start(environment) for _ in range(8)]
    counts = [finish(process)[0] for process in processes]
    assert sum(counts) == 1


def test_damage_is_repaired_with_one_warning(environment):
    finish(start(environment))
    folder = environment["BASTILE_CACHE_DIR"]
    (entry,) = [name for name in os.listdir(folder) if name.endswith(".kernel")]
    path = os.path.join(folder, entry)
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    count, errors = finish(start(environment))
    assert count == 1
    assert errors.count("RuntimeWarning") == 1
    assert finish(start(environment)) == (0, "")


def test_a_folder_open_to_others_is_refused(environment):
    folder = environment["BASTILE_CACHE_DIR"]
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    count, errors = finish(start(environment))
    assert count == 1
    assert folder in errors and errors.count("RuntimeWarning") == 1
    assert os.listdir(folder) == []


def test_without_a_disk(environment):
    environment["BASTILE_CACHE_DIR"] = ""
    assert finish(start(environment)) == (1, "")
    result = command(environment, "list")
    assert "switched off" in result.stderr


def test_command_line(environment, tmp_path):
    finish(start(environment))
    listing = command(environment, "list")
    assert "code softmax host" in listing.stdout
    assert "1 entries" in listing.stdout
    archive = str(tmp_path / "kernels.tar")
    assert "wrote 1 entries" in command(environment, "export", archive).stdout
    assert "1 entries are intact" in command(environment, "verify").stdout
    assert "removed 1 entries" in command(environment, "clear").stdout
    assert "added 1 entries; 0 were there" in (
        command(environment, "import", archive).stdout
    )
    assert finish(start(environment)) == (0, "")


def test_archives_that_are_none_or_cut_off(environment, tmp_path):
    finish(start(environment))
    archive, cut = tmp_path / "kernels.tar", tmp_path / "cut.tar"
    command(environment, "export", str(archive))
    contents = archive.read_bytes()
    with tarfile.open(archive) as whole:
        (member,) = whole
        end = member.offset_data + -(-member.size // 512) * 512
    for length, message in (
        (100, "is no tar archive"),
        (member.offset_data + 10, "is damaged"),
        (end, "is cut off"),
    ):
        cut.write_bytes(contents[:length])
        result = command(environment, "import", str(cut))
        assert result.returncode == 1
        assert message in result.stderr and "Traceback" not in result.stderr


def test_a_link_is_not_imported(environment, tmp_path):
    archive = tmp_path / "link.tar"
    with tarfile.open(archive, "w") as target:
        member = tarfile.TarInfo("0" * 32 + ".kernel")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        target.addfile(member)
    result = command(environment, "import", str(archive))
    assert result.returncode == 1 and "1 refused" in result.stdout


def test_a_forged_entry_is_not_imported(environment, tmp_path):
    finish(start(environment))
    archive = str(tmp_path / "kernels.tar")
    command(environment, "export", archive)
    command(environment, "clear")
    forged = str(tmp_path / "forged.tar")
    with tarfile.open(archive) as source, tarfile.open(forged, "w") as target:
        for member in source:
            member.name = "0" * 32 + ".kernel"
            target.addfile(member, source.extractfile(member))
            member.name = "../outside.kernel"
            target.addfile(member, source.extractfile(member))
    result = command(environment, "import", forged)
    assert result.returncode == 1
    assert "added 0 entries; 0 were there, 2 refused" in result.stdout
    assert not (tmp_path / "outside.kernel").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux")
def test_a_folder_whose_name_is_no_text(environment, tmp_path):
    """It holds kernels; where it cannot be made, a warning shows its bytes."""
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    environment["BASTILE_CACHE_DIR"] = folder
    assert finish(start(environment)) == (1, "")
    assert finish(start(environment)) == (0, "")
    (tmp_path / "file").touch()
    environment["BASTILE_CACHE_DIR"] = os.path.join(tmp_path, "file", "\udcff")
    count, errors = finish(start(environment))
    assert count == 1
    assert "file/\\xff" in errors
