# Part of Bastile, under the MIT License. See LICENSE.
"""Compiling candidates and timing them on a GPU."""

import dataclasses
import hashlib

from bastile import _bastile


class Candidate:
    """A compiled schedule."""

    def __init__(self, request):
        stored = _bastile.load(request.native())
        self.program = stored.program
        #: A name of the code: equal code takes equal time.
        self.code = hashlib.sha256(stored.code).hexdigest()[:16]


class GpuMeter:
    """Measures the candidates of one request on tensors of given sizes.

    The tensors of one function are there at a time: those of large shapes fill a
    good part of a GPU.
    """

    def __init__(self, request, sizes, device):
        self._request = request
        self._sizes = [list(size) for size in sizes]
        self._device = device
        self._reference = None
        self._function = None
        self._trial = None

    def launches(self) -> list:
        """The kernels and their candidates, as the compiler enumerates them."""
        return _bastile.enumerate_schedules(self._request.native())

    def compile(self, schedule) -> Candidate:
        """Safe to call from several threads."""
        request = dataclasses.replace(self._request, schedule=schedule)
        return Candidate(request)

    def prepare(self, function, candidate) -> None:
        """Loads it into the GPU; safe to call from several threads."""
        candidate.program.prepare(self._device, function)

    def spilled_bytes(self, function, kernel, candidate) -> int:
        """Of a thread of ``kernel``, what lies in memory instead of registers."""
        found = candidate.program.resources(self._device, function)
        return sum(x["spilled_bytes"] for x in found if x["kernel"] == kernel)

    def open(self, function) -> None:
        """Makes the tensors of ``function``.

        Raises ``RuntimeError`` where they or the heuristic's code do not run.
        """
        if function == self._function:
            return
        self._trial, self._function = None, None  # gives its memory back first
        if self._reference is None:
            self._reference = self.compile("")
        self._trial = _bastile.Trial(
            self._reference.program, function, self._sizes, self._device
        )
        self._function = function

    def difference(self, function, candidate) -> float:
        """How far its results are from the heuristic's; 1 is what rounding
        excuses."""
        self.open(function)
        return self._trial.compare(candidate.program)

    def seconds(self, function, candidate, repeat) -> list:
        """The device's time of each of ``repeat`` calls."""
        self.open(function)
        return self._trial.time(candidate.program, repeat)
