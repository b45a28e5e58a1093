# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The search for schedules, with made-up times."""

import io
import itertools
import pathlib
import sys

import pytest
from bastile._tuning import progress, store
from bastile._tuning.search import Search

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Inputs"))
from tuning import Clock, Meter, launch  # noqa: E402

CONTEXT = {"gpu": "a", "key": "b", "sizes": [[8, 64]]}


@pytest.fixture
def log(tmp_path):
    return store.Log(tmp_path / "folder" / "log.jsonl")


def by_rows(times):
    """The time of a schedule, from that of each number of rows."""

    def seconds(function, schedule):
        rows = [int(part.rpartition("= ")[2]) for part in schedule.split("; ") if part]
        return sum((times.get(number, 1.0) for number in rows), 0.0) or times[1]

    return seconds


def search(meter, log, budget=1e9, **options):
    deadline = meter.clock() + budget
    return Search(meter, log, CONTEXT, deadline, meter.clock, **options).run()


def test_finds_the_fastest(log):
    meter = Meter([launch("f", "k", 3)], by_rows({1: 1.0, 2: 0.9, 3: 0.7, 4: 0.8}))
    (outcome,) = search(meter, log)
    assert (outcome.pins, outcome.schedule) == ("k: rows = 3", "rows = 3")
    assert (outcome.heuristic_seconds, outcome.seconds) == (1.0, 0.7)
    assert (outcome.measured, outcome.candidates) == (4, 4)


def test_keeps_the_heuristics_choice_unless_another_is_clearly_faster(log):
    meter = Meter([launch("f", "k", 2)], by_rows({1: 1.0, 2: 0.995, 3: 1.1}))
    (outcome,) = search(meter, log)
    assert outcome.pins == ""
    assert outcome.schedule == "rows = 1"
    assert outcome.gain == 1


def test_tunes_kernels_one_after_the_other(log):
    def seconds(function, schedule):
        return 1.0 - 0.1 * schedule.count("rows = 2")

    meter = Meter([launch("f", "k", 2), launch("g", "l", 2)], seconds)
    first, second = search(meter, log)
    assert (first.pins, second.pins) == ("k: rows = 2", "l: rows = 2")
    # The second kernel's candidates stand beside what the first was given.
    assert "k: rows = 2; l: rows = 3" in meter.compiled
    assert "l: rows = 3" not in meter.compiled


def test_drops_what_computes_something_else(log):
    meter = Meter(
        [launch("f", "k", 2)],
        by_rows({1: 1.0, 2: 0.1, 3: 0.5}),
        wrong=["k: rows = 2"],
    )
    (outcome,) = search(meter, log)
    assert outcome.pins == "k: rows = 3"
    assert outcome.measured == 2
    errors = [record["error"] for record in log.records() if "error" in record]
    assert errors == ["results differ by 100 roundings"]


def test_drops_what_spills_but_not_the_heuristics_choice(log):
    meter = Meter(
        [launch("f", "k", 2)],
        by_rows({1: 1.0, 2: 0.1, 3: 0.5}),
        spilling=["", "k: rows = 2"],
    )
    (outcome,) = search(meter, log)
    assert outcome.pins == "k: rows = 3"
    errors = [record["error"] for record in log.records() if "error" in record]
    assert errors == ["a thread spills 8 bytes"]


def test_what_was_dropped_for_its_spills_may_become_the_heuristics_choice(log):
    seconds = by_rows({1: 1.0, 2: 0.5})
    search(Meter([launch("f", "k", 1)], seconds, spilling=["k: rows = 2"]), log)
    again = Meter([launch("f", "k", 1)], seconds, spilling=["", "k: rows = 2"])
    compiled = again.compile
    # The same code, which another heuristic chooses by itself.
    again.compile = lambda schedule: compiled(schedule or "k: rows = 2")
    assert search(again, log)[0].heuristic_seconds == 0.5


def test_drops_what_does_not_compile_beside_the_rest(log):
    meter = Meter(
        [launch("f", "k", 2)],
        by_rows({1: 1.0, 2: 0.1, 3: 0.5}),
        broken=["k: rows = 2"],
    )
    assert search(meter, log)[0].pins == "k: rows = 3"


def test_fails_where_the_heuristics_schedule_fails(log):
    meter = Meter([launch("f", "k", 2)], by_rows({1: 1.0}), wrong=[""])
    with pytest.raises(RuntimeError, match="'k' fails with the heuristic's"):
        search(meter, log)


class Killed(BaseException):
    pass


def test_a_killed_search_loses_at_most_one_candidate(log):
    meter = Meter([launch("f", "k", 9)], by_rows({1: 1.0, 8: 0.5}))
    measured = itertools.count(1)

    def kill(kernel):
        if next(measured) == 5:
            raise Killed

    with pytest.raises(Killed):
        search(meter, log, step=kill)
    assert len(log.records()) == 5
    again = Meter([launch("f", "k", 9)], by_rows({1: 1.0, 8: 0.5}))
    (outcome,) = search(again, log)
    assert len(again.compared) == 5
    assert not set(again.compared) & set(meter.compared)
    assert outcome.pins == "k: rows = 8"
    assert outcome.measured == 10


def test_what_was_measured_for_other_sizes_does_not_count(log):
    seconds = by_rows({1: 1.0})
    search(Meter([launch("f", "k", 2)], seconds), log)
    again = Meter([launch("f", "k", 2)], seconds)
    other = {**CONTEXT, "sizes": [[16, 64]]}
    Search(again, log, other, 1e9, again.clock).run()
    assert len(again.compared) == 3


def test_stays_within_the_budget(log):
    meter = Meter([launch("f", "k", 100), launch("f", "l", 100)], by_rows({1: 1.0}))
    outcomes = search(meter, log, budget=1.0)
    # A measurement takes an eighth of a second. The code of the last kernel's
    # first candidate is known by then.
    assert meter.clock() == 1.0
    assert [outcome.measured for outcome in outcomes] == [4, 5]
    assert outcomes[1].pins == ""


def test_a_broken_line_spoils_no_other(log):
    log.append({"a": 1})
    with open(log.path, "a") as file:
        file.write('{"b": 2, "c')
    log.append({"d": 3})
    assert log.records() == [{"a": 1}, {"d": 3}]
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert log.path.parent.stat().st_mode & 0o777 == 0o700


def show(monkeypatch, times, tqdm=None):
    monkeypatch.setitem(sys.modules, "tqdm", tqdm)
    clock, stream = Clock(), io.StringIO()
    with progress.Progress("tuning", 3, clock, stream) as bar:
        for time in times:
            clock.now = time
            bar.step("tuning k")
    return stream.getvalue()


def test_shows_nothing_that_takes_less_than_a_second(monkeypatch):
    assert show(monkeypatch, [0.1, 0.5, 0.9]) == ""


def test_shows_what_takes_longer(monkeypatch):
    text = show(monkeypatch, [0.1, 1.5, 2.0])
    assert text == "\rtuning k: 2/3\x1b[K\rtuning k: 3/3\x1b[K\n"


def test_shows_it_by_tqdm_where_that_is_installed(monkeypatch):
    steps = []

    class Bar:
        n = 0

        def __init__(self, **options):
            assert options["total"] == 3

        def set_description(self, text, refresh):
            assert text == "tuning k"

        def update(self, count):
            self.n += count
            steps.append(self.n)

        def close(self):
            steps.append("closed")

    module = type(sys)("tqdm")
    module.tqdm = Bar
    assert show(monkeypatch, [0.1, 1.5, 2.0], module) == ""
    assert steps == [2, 3, "closed"]
