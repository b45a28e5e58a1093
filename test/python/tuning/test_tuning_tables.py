# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Tables of schedules: what they belong to, and which one is used."""

import dataclasses
import json
import math
import pathlib
import sys

import bastile
import numpy as np
import pytest
from bastile import _bastile
from bastile._compiler import loading
from bastile._tuning import jobs, keys, lookup, store

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Inputs"))
from tuning import GPU, cache  # noqa: E402, F401


def request(op="rms_norm", shape=(8, 2880), dtype="bf16", **options):
    kernel = bastile.compile(op, shape, dtype=dtype, target="sm_90", **options)
    return kernel._request


def line(request, schedule, rows=8192, **more):
    return {
        "key": keys.key(request),
        "name": request.name,
        "rows": rows,
        "schedule": schedule,
        **more,
    }


def tune(request, schedule, rows=8192, **more):
    """Leaves a result as the tuner does."""
    record = {"kind": "best", **line(request, schedule, rows, **more)}
    store.open_log(GPU).append(record)
    lookup.changed()


def test_a_key_knows_neither_rows_nor_an_epsilon():
    key = keys.key(request())
    assert key == keys.key(request(shape=(4096, 2880)))
    assert key == keys.key(request(eps=1e-5))
    assert key == keys.key(dataclasses.replace(request(), name="other"))


def test_a_key_knows_what_schedules_depend_on():
    with_weight = {"input": (8, 2880), "weight": (2880,)}
    different = [
        request(),
        request("layer_norm"),
        request(shape=(8, 2881)),
        request(shape=(8, 8, 2880)),
        request(dtype="f16"),
        request(grad=True),
        request(shape=with_weight),
        request(shape=with_weight, grad=True),
        request(shape=with_weight, grad="weight"),
        # A zero takes a part of the formula away.
        request("cross_entropy"),
        request("cross_entropy", label_smoothing=0.1),
    ]
    assert len({keys.key(one) for one in different}) == len(different)


def test_all_operands_are_all():
    shapes = {"input": (8, 2880), "weight": (2880,)}
    key = keys.key(request(shape=shapes, grad=True))
    assert key == keys.key(request(shape=shapes, grad=("weight", "input")))


def test_a_key_knows_operands_by_their_places():
    def key(function, rows, gradient):
        shapes = {rows: (8, 64), "scale": (64,)}
        return keys.key(request(function, shapes, grad=gradient))

    first = key(lambda x, scale: x * scale, "x", "x")
    assert first == key(lambda data, scale: data * scale, "data", "data")
    assert first != key(lambda x, scale: x * scale, "x", "scale")


def test_a_key_does_not_follow_the_printer():
    """The same module, written otherwise."""
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16", target="sm_90")
    source = kernel._request.source
    spaced = source.replace("%0", "%normed").replace(" : ", "  :  ")
    assert spaced != source
    again = dataclasses.replace(kernel._request, source=f"// 1.0 = one\n{spaced}")
    assert keys.key(again) == keys.key(kernel._request)


def test_a_key_stays_the_same():
    # Tables come with the package: another key would lose them.
    assert keys.key(request()) == "99a268499f75569b"


def test_rows_fall_into_buckets():
    assert [keys.bucket(rows) for rows in (1, 1024, 1025, 4096, 16384, 16385)] == [
        0,
        0,
        1,
        1,
        2,
        3,
    ]


def test_the_most_rows_count(cache):
    wanted = request()
    tune(wanted, "threads = 128", rows=65536)
    tune(wanted, "threads = 64", rows=512)
    assert lookup.find_schedule(wanted, GPU) == "threads = 128"
    tune(wanted, "threads = 256", rows=20000)  # of the same bucket, and later
    assert lookup.find_schedule(wanted, GPU) == "threads = 256"


def test_names_a_gpu():
    assert keys.slug("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"


@pytest.fixture
def shipped(monkeypatch):
    table = store.Table()
    monkeypatch.setattr(store, "shipped_table", lambda gpu: table)
    lookup.changed()
    return table


def test_what_the_user_tuned_goes_before_what_came_along(cache, shipped):
    wanted = request()
    assert lookup.find_schedule(wanted, GPU) == ""
    shipped.add(line(wanted, "threads = 128"))
    assert lookup.find_schedule(wanted, GPU) == "threads = 128"
    tune(wanted, "threads = 256")
    assert lookup.find_schedule(wanted, GPU) == "threads = 256"
    assert lookup.find_schedule(wanted, "another model") == "threads = 128"
    bastile.clear_autotune_cache()
    assert lookup.find_schedule(wanted, GPU) == "threads = 128"
    # That the heuristic's choice is the best is a result as well.
    tune(wanted, "")
    assert lookup.find_schedule(wanted, GPU) == ""


def test_without_a_gpu_there_is_no_table(cache, shipped):
    shipped.add(line(request(), "threads = 128"))
    assert lookup.find_schedule(request(), None) == ""


def test_what_a_user_pins_stays(cache, shipped):
    pinned = request(schedule="threads = 64")
    shipped.add(line(request(), "threads = 128"))
    assert loading.with_schedule(pinned, lambda used: used) is pinned
    source = request().source.replace(
        "xbf16> {\n    %0",
        "xbf16> attributes {tile.schedule = #tile.rows<threads = 64>} {\n    %0",
    )
    written = dataclasses.replace(request(), source=source)
    assert "threads = 64" in _bastile.lower_text(written.native(), "scheduled")
    shipped.add(line(written, "threads = 128"))
    assert loading.with_schedule(written, lambda used: used) is written


def test_a_kernel_has_the_schedule_that_was_found(cache):
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16", target="sm_90")
    assert "threads = 192" in kernel.schedule["rms_norm_kernel"]
    tune(kernel._request, "rms_norm_kernel: threads = 128")
    assert "threads = 128" in kernel.schedule["rms_norm_kernel"]
    assert ".reqntid 128" in kernel.ptx
    assert "threads = 128" in kernel.mlir("scheduled")


def test_the_host_has_its_own(cache, shipped):
    shipped.add(line(request("silu", (8, 64), dtype="f32"), "threads = 128"))
    x = np.ones((4, 64), np.float32)
    kernel = bastile.compile("silu", (8, 64), dtype="f32")
    np.testing.assert_allclose(kernel(x), x / (1 + np.exp(-x)), rtol=1e-6)


def test_a_table_that_does_not_fit_the_compiler_is_no_error(cache):
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16", target="sm_90")
    tune(kernel._request, "a_kernel_of_old: threads = 128")
    assert ".reqntid 192" in kernel.ptx
    assert "threads = 192" in kernel.schedule["rms_norm_kernel"]


def test_the_tables_that_come_along_can_be_read():
    paths = sorted((pathlib.Path(store.__file__).parent / "tables").iterdir())
    assert paths
    for path in paths:
        assert path.stem == keys.slug(json.loads(path.read_text())["gpu"])
        table = store.read_table(path)
        for entry in table.entries():
            # One that was timed where launches decide would also be taken for
            # many rows.
            assert math.prod(entry["sizes"][0]) >= 2**24, entry
            spec = jobs.Spec(**entry["spec"])
            kernel = spec.kernel("sm_90")
            assert keys.key(kernel._request) == entry["key"], spec
            # The line of the most rows is what a kernel gets.
            entries = [x for x in table.entries() if x["key"] == entry["key"]]
            most = max(entries, key=lambda x: x["rows"])
            assert table.find(keys.key(kernel._request)) == most
            found = dataclasses.replace(kernel._request, schedule=entry["schedule"])
            _bastile.describe_text(found.native())


def test_every_entry_of_the_preset_is_a_job():
    made = [jobs.make_job(spec, "sm_90") for spec in jobs.read_preset("models")]
    assert len(made) > 30
    rope = next(job for job in made if job.name == "rope")
    assert rope.sizes == (
        (4, 2048, 32, 128),
        (1, 2048, 1, 64),
        (1, 2048, 1, 64),
    )
    assert rope.rows == 4 * 2048 * 32
    with pytest.raises(ValueError, match="no preset 'modles'"):
        jobs.read_preset("modles")


def test_sizes_that_do_not_follow_are_asked_for():
    inputs = [
        {"name": "x", "shape": [None, None, 64]},
        {"name": "y", "shape": [None, 64]},
    ]
    with pytest.raises(ValueError, match="shape of 'y' does not follow"):
        jobs.operand_sizes(inputs, (2, 3, 64))
    sizes = jobs.operand_sizes(inputs, {"x": (2, 3, 64), "y": (5, 64)})
    assert sizes == ((2, 3, 64), (5, 64))
    with pytest.raises(ValueError, match="no operand 'z'"):
        jobs.operand_sizes(inputs, {"z": (5, 64)})
