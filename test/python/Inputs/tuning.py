# Part of Bastile, under the MIT License. See LICENSE.
"""A GPU that is not there, for tests of the tuner."""

import dataclasses
import hashlib

import pytest
from bastile import _bastile
from bastile._compiler import loading
from bastile._tuning import lookup, measure

GPU = "NVIDIA Test 1"


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@dataclasses.dataclass
class Compiled:
    schedule: str
    code: str


class Meter:
    """Kernels with candidates, each of which takes the time that it is given.

    A measurement takes an eighth of a second of ``clock``.
    """

    def __init__(self, launches, seconds, clock=None, wrong=(), broken=(), spilling=()):
        self._launches = launches
        self._seconds = seconds
        self.clock = clock or Clock()
        self.wrong, self.broken, self.spilling = wrong, broken, spilling
        self.compared, self.compiled = [], []

    def launches(self):
        return self._launches

    def compile(self, schedule):
        self.compiled.append(schedule)
        if schedule in self.broken:
            raise _bastile.CompileError("does not fit")
        return Compiled(schedule, hashlib.sha256(schedule.encode()).hexdigest())

    def prepare(self, function, candidate):
        pass

    def open(self, function):
        pass

    def spilled_bytes(self, function, kernel, candidate):
        return 8 if candidate.schedule in self.spilling else 0

    def difference(self, function, candidate):
        self.compared.append(candidate.schedule)
        self.clock.now += 0.125
        return 100.0 if candidate.schedule in self.wrong else 0.5

    def seconds(self, function, candidate, repeat):
        return [self._seconds(function, candidate.schedule)] * repeat


class EnumeratedMeter(Meter):
    """The compiler's own candidates; only code and time are made up: the more
    threads, the less time."""

    made = []

    def __init__(self, request, sizes, device):
        super().__init__(None, None)
        self._request = request
        self.launches = measure.GpuMeter(request, sizes, device).launches
        self.made.append(self)

    def compile(self, schedule):
        request = dataclasses.replace(self._request, schedule=schedule)
        text = _bastile.lower_text(request.native(), "scheduled")
        return Compiled(schedule, hashlib.sha256(text.encode()).hexdigest())

    def seconds(self, function, candidate, repeat):
        threads = [
            int(field.partition("=")[2])
            for field in candidate.schedule.split(",")
            if "threads" in field
        ]
        return [1e-3 / (max(threads, default=0) + 1000)] * repeat


def launch(function, kernel, count):
    """A kernel with the heuristic's candidate and ``count`` others."""
    others = [(f"{kernel}: rows = {n}", f"rows = {n}") for n in range(2, count + 2)]
    return {
        "function": function,
        "kernel": kernel,
        "candidates": [("", "rows = 1"), *others],
    }


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of its own, and a GPU of the model ``GPU``."""
    monkeypatch.setenv("BASTILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BASTILE_AUTOTUNE", raising=False)
    monkeypatch.setattr(loading, "gpu_model", lambda target: GPU)
    monkeypatch.setattr(loading, "gpu_target", lambda device: "sm_90")
    monkeypatch.setattr(_bastile, "describe_gpu", lambda device: {"name": GPU})
    EnumeratedMeter.made = []
    lookup.changed()
    yield tmp_path / "cache"
    lookup.changed()
