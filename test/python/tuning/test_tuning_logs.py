# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Logs and tables that somebody else wrote, or nobody: what is not a record is
skipped, and what others may write is not read."""

import json
import os
import pathlib
import sys
import warnings

import bastile
import pytest
from bastile._tuning import keys, lookup, records, store
from bastile._tuning.search import Search
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Inputs"))
from tuning import GPU, Meter, cache, launch  # noqa: E402, F401

#: How many logs and tables to make up; scripts/fuzz.py asks for more.
EXAMPLES = int(os.environ.get("BASTILE_FUZZ_RUNS", 200))


@pytest.fixture(autouse=True)
def no_warnings_before():
    store._warned.clear()
    store._in_memory.clear()
    yield
    store._in_memory.clear()


def request():
    return bastile.compile("rms_norm", (8, 2880), dtype="bf16", target="sm_90")._request


def best(schedule="threads = 128", **changed):
    record = {
        "kind": "best",
        "key": keys.key(request()),
        "name": "rms_norm",
        "rows": 8192,
        "schedule": schedule,
    }
    return {**record, **changed}


def write_log(folder, *lines):
    """A log of these lines, and the schedule that is found with it."""
    path = folder / "tuning" / f"{keys.slug(GPU)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text("".join(f"{line}\n" for line in lines))
    os.chmod(folder, 0o700)
    os.chmod(path, 0o600)
    lookup.changed()
    return path


def find():
    return lookup.find_schedule(request(), GPU)


BAD = {
    "a list": "[]",
    "a number": "7",
    "a string": '"best"',
    "null": "null",
    "no key": json.dumps({"kind": "best"}),
    "a key of the wrong type": json.dumps(best(key=["a"])),
    "a name of the wrong type": json.dumps(best(name=3)),
    "rows of the wrong type": json.dumps(best(rows="many")),
    "rows that are true": json.dumps(best(rows=True)),
    "a negative number of rows": json.dumps(best(rows=-1)),
    "a schedule of the wrong type": json.dumps(best(schedule={"threads": 1})),
    "half a character": json.dumps(best(schedule="\ud800")),
    "a spec of the wrong type": json.dumps(best(spec=[1])),
    "a kind of the wrong type": json.dumps(best(kind=["best"])),
    "a measurement of nothing": json.dumps({"kind": "time"}),
    "a time of the wrong type": json.dumps(
        {"kind": "time", "function": "f", "code": "c", "seconds": "1"}
    ),
    "no time": json.dumps({"kind": "time", "function": "f", "code": "c", "seconds": 0}),
    "not a number": '{"kind": "time", "function": "f", "code": "c", "seconds": NaN}',
    "nested lists": "[" * 100_000 + "]" * 100_000,
    "nested objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_a_bad_line_is_skipped_with_one_warning(cache, line):
    path = write_log(cache, line, json.dumps(best()), line)
    with pytest.warns(RuntimeWarning, match="no tuner wrote are skipped") as said:
        assert find() == "threads = 128"
        lookup.changed()
        assert find() == "threads = 128"
    assert len(said) == 1
    assert str(path) in str(said[0].message)
    # A compilation is none the worse for it, and neither is a search.
    assert (
        ".reqntid 128"
        in bastile.compile("rms_norm", (8, 2880), dtype="bf16", target="sm_90").ptx
    )
    meter = Meter([launch("f", "k", 1)], lambda function, schedule: 1e-3)
    Search(meter, store.open_log(GPU), {"gpu": GPU}, 1e9, meter.clock).run()


def test_what_a_killed_process_leaves_is_skipped_in_silence(cache):
    write_log(cache, json.dumps(best()), '{"kind": "be')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find() == "threads = 128"


@pytest.mark.parametrize("place", ["cache", "tuning", "log"])
def test_what_others_may_write_is_not_read(cache, place):
    path = write_log(cache, json.dumps(best()))
    os.chmod({"cache": cache, "tuning": path.parent, "log": path}[place], 0o777)
    lookup.changed()
    with pytest.warns(RuntimeWarning, match="others may write to it") as said:
        assert find() == ""
        lookup.changed()
        assert find() == ""
    assert len(said) == 1
    # What is tuned now lasts as long as the process.
    store.open_log(GPU).append(best("threads = 256"))
    lookup.changed()
    assert find() == "threads = 256"
    assert path.read_text() == json.dumps(best()) + "\n"


def test_the_log_of_a_link_is_not_read(cache, tmp_path):
    path = write_log(cache, json.dumps(best()))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    lookup.changed()
    with pytest.warns(RuntimeWarning, match="cannot open"):
        assert find() == ""


def test_a_table_of_anything_else_is_refused(tmp_path):
    path = tmp_path / "table.json"
    deep = "[" * 100_000
    for text in ("", "[]", "{}", '{"entries": 3}', '{"entries": [3]}', deep):
        path.write_text(text)
        with pytest.raises(ValueError, match="is no table of tuned schedules"):
            store.read_table(path)
    store.write_table(path, GPU, "0", [best()])
    assert store.read_table(path).entries() == [best()]


def test_a_table_that_cannot_be_written_leaves_the_last_one(tmp_path):
    path = tmp_path / "table.json"
    store.write_table(path, GPU, "0", [best()])
    with pytest.raises(TypeError):
        store.write_table(path, GPU, "0", [best(), object()])
    # A full disk, say.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(path), "replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.write_table(path, GPU, "0", [])
    assert store.read_table(path).entries() == [best()]
    assert list(tmp_path.iterdir()) == [path]


def test_warming_up_leaves_out_what_this_version_does_not_know(cache, monkeypatch):
    from bastile._tuning import api

    specs = [
        {"op": "silu", "shape": [8, 64]},
        {"op": "silo", "shape": [8, 64]},
        {"op": "silu", "shape": "wide"},
        {"op": "silu", "shape": [8, 64], "colour": "red"},
        {"shape": [8, 64]},
    ]
    lines = [best(key=str(number), spec=spec) for number, spec in enumerate(specs)]
    write_log(cache, *map(json.dumps, lines))
    monkeypatch.setattr(store, "shipped_table", lambda gpu: store.Table())
    found = api._to_warm(None, None, "bf16", False, 0, "sm_90")
    assert [kernel.name for kernel in found] == ["silu"]


# Values that a record has, and such as it never has.
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(["best", "time", "threads = 128", 10**400])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
fields = st.sampled_from(
    "kind key name rows schedule spec function code seconds sizes gpu".split()
)
lines = (
    st.dictionaries(fields, values, max_size=9).map(json.dumps)
    | st.dictionaries(fields, values, max_size=3).map(
        lambda changed: json.dumps({**best(), **changed})
    )
    | values.map(json.dumps)
    | st.text(max_size=40)
    | st.binary(max_size=40).map(lambda data: data.decode(errors="replace"))
)


@settings(
    max_examples=EXAMPLES,
    deadline=10_000,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(lines, max_size=5))
@example(["[" * 100_000])
def test_any_log_can_be_read(lines):
    found, strange = store.read_records("\n".join(lines))
    assert strange <= len(lines)
    table = store.Table(one for one in found if one.get("kind") == "best")
    for entry in table.entries():
        chosen = table.find(entry["key"])
        chosen["schedule"].encode()
    log = store.MemoryLog()
    for record in found:
        log.append(record)
    meter = Meter([launch("f", "k", 1)], lambda function, schedule: 1e-3)
    Search(meter, log, {"gpu": GPU}, 1e9, meter.clock)


@settings(
    max_examples=EXAMPLES,
    deadline=10_000,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(values)
def test_any_table_is_read_or_refused(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "table.json"
    for text in (json.dumps(value), json.dumps({"entries": [value]})):
        path.write_text(text)
        try:
            table = store.read_table(path)
        except ValueError:
            continue
        assert all(records.is_entry(entry) for entry in table.entries())
