# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""What the package logs, and BASTILE_LOG."""

import logging
import os
import re
import subprocess
import sys

import pytest

COMPILE = """
import numpy, bastile
for rows in (3, 5):
    bastile.ops.softmax(numpy.ones((rows, 24), "float32"))
"""


def run(code, folder, **environment):
    """What a process that runs ``code`` prints to standard error."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BASTILE_CACHE_DIR": str(folder), **environment},
        text=True,
        capture_output=True,
        check=True,
    ).stderr


def test_says_nothing_and_imports_no_logging_unless_asked(tmp_path):
    code = COMPILE.replace("numpy, bastile", "array, bastile, sys").split("for")[0]
    code += "\nassert 'logging' not in sys.modules"
    assert run(code, tmp_path) == ""
    for off in ("", "0", "off"):
        assert run(COMPILE, tmp_path, BASTILE_LOG=off) == ""


def test_names_what_is_compiled_and_what_the_cache_had(tmp_path):
    (line,) = run(COMPILE, tmp_path, BASTILE_LOG="info").splitlines()
    # Another number of rows compiles nothing, and says nothing.
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d bastile\.compiler: compiled softmax\(input: .*24.*f32.*\) "
        r"for host in \d+ ms",
        line,
    )
    assert run(COMPILE, tmp_path, BASTILE_LOG="info") == ""
    (line,) = run(COMPILE, tmp_path, BASTILE_LOG="DEBUG").splitlines()
    assert "bastile.compiler: found softmax(" in line and "in the cache" in line


def test_a_job_of_several_processes_says_which_one(tmp_path):
    text = run(COMPILE, tmp_path, BASTILE_LOG="info", RANK="3")
    assert " bastile.compiler [rank 3]: compiled softmax(" in text


def test_another_word_is_warned_of(tmp_path):
    text = run("import bastile", tmp_path, BASTILE_LOG="verbose")
    assert "BASTILE_LOG=verbose is none of info, debug" in text


def test_a_program_that_logs_itself_gets_each_line_once(tmp_path):
    start = (
        "import logging; logging.basicConfig(level='INFO', format='own %(message)s')"
    )
    assert run(start + COMPILE, tmp_path).startswith("own compiled softmax(")
    (line,) = run(start + COMPILE, tmp_path / "b", BASTILE_LOG="info").splitlines()
    assert not line.startswith("own")


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.DEBUG, "bastile")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_schedule_that_is_not_valid_any_more_is_named(said, monkeypatch):
    from bastile import _bastile
    from bastile._compiler import loading, schedules

    monkeypatch.setattr(schedules, "find", lambda request, gpu: "rows=3")

    def action(request):
        if request.schedule:
            raise _bastile.CompileError("'rows' is 3")
        return "heuristic"

    request = loading.Request("", "sm_90", "softmax")
    assert loading.with_schedule(request, action) == "heuristic"
    (message,) = said()
    assert message.startswith("softmax: its tuned schedule 'rows=3' is not valid")
    assert "'rows' is 3" in message


def test_gpus_without_tuned_schedules_are_named_once(said, monkeypatch, tmp_path):
    from bastile._tuning import lookup

    monkeypatch.setenv("BASTILE_CACHE_DIR", str(tmp_path))
    lookup.forget()
    for _ in range(2):
        lookup._tables("Some GPU")
    lookup.forget()
    assert [x for x in said() if "Some GPU" in x] == [
        "nothing was tuned for Some GPU: the compiler chooses schedules (bastile.autotune)"
    ]


def test_variants_that_a_gpu_cannot_run_are_named(said, monkeypatch):
    import bastile
    from bastile._compiler import kernel, loading

    class Program:
        def left_out(self, device):
            return [f"GPU {device} lacks 100% of it"]

    class Code(loading.Code):
        program = Program()

        def __init__(self):
            pass

        def kernel(self):
            return "kernel"

    monkeypatch.setattr(kernel.Kernel, "_code", lambda *arguments: Code())
    compiled = bastile.compile("softmax", (8, 24), dtype="f32")
    for _ in range(2):
        assert compiled.native(1) == "kernel"
    assert said() == ["GPU 1 lacks 100% of it"]
