# Part of Bastile, under the MIT License. See LICENSE.
"""Finding the fastest schedule of each kernel within a time budget."""

import collections
import contextlib
import dataclasses
import itertools
import os
import statistics
import time

from bastile import _bastile, _log
from bastile._tuning.pool import Pool

_channel = _log.Channel("tuning")

#: The share of the heuristic's time that another schedule must save to be worth a line
#: in a table: less is noise.
LEAST_GAIN = 0.01
#: A candidate this much slower than the best is not measured any further.
HOPELESS = 1.3
#: How many of the best are measured once more, in turn.
FINALISTS = 3
FINAL_ROUNDS = 3


@dataclasses.dataclass
class Outcome:
    """What was found for one kernel."""

    function: str
    kernel: str
    #: What pins its schedule; empty for the heuristic's.
    pins: str
    schedule: str
    heuristic_seconds: float
    seconds: float
    #: How many candidates were measured, of how many.
    measured: int
    candidates: int

    @property
    def has_choice(self) -> bool:
        """Whether another schedule was measured, if there is one."""
        return self.measured > 1 or self.candidates == 1

    @property
    def gain(self) -> float:
        """How many times as fast as with the heuristic's schedule the kernel is."""
        return self.heuristic_seconds / self.seconds


class Search:
    """The search for one request on one set of sizes.

    Args:
        meter: compiles and measures (``GpuMeter``, or a stand-in).
        log: takes every measurement, and gives back those of earlier runs.
        context: what of a measurement the code does not say: the model of the
            GPU and the sizes.
        deadline: when to stop, by ``clock``.
        step: called with the kernel's name after each candidate.
        expect: called with the number of candidates of each kernel.
    """

    def __init__(
        self,
        meter,
        log,
        context,
        deadline,
        clock=time.monotonic,
        step=lambda kernel: None,
        expect=lambda count: None,
        workers=None,
    ):
        self._meter = meter
        self._log = log
        self._context = context
        self._deadline = deadline
        self._clock = clock
        self._step = step
        self._expect = expect
        self._workers = workers or max(2, min(8, (os.cpu_count() or 2) // 2))
        self._known = {
            (record["function"], record["code"]): record
            for record in log.records()
            if record.get("kind") == "time"
            and all(record.get(name) == value for name, value in context.items())
        }

    def run(self) -> list:
        """An ``Outcome`` for each kernel, in the order of the launches."""
        launches = self._meter.launches()
        left = sum(len(launch["candidates"]) for launch in launches)
        self._expect(left)
        outcomes = []
        for launch in launches:
            # Later kernels share the time that this one leaves of its part.
            now, count = self._clock(), len(launch["candidates"])
            deadline = now + (self._deadline - now) * count / left
            left -= count
            # The kernels before have their schedules, those after the
            # heuristic's.
            settled = [outcome.pins for outcome in outcomes if outcome.pins]
            outcomes.append(self._tune(launch, settled, deadline))
        return outcomes

    def _tune(self, launch, settled, deadline):
        function, kernel = launch["function"], launch["kernel"]
        candidates = launch["candidates"]
        times, compiled = {}, {}
        best = None
        for (pins, fields), candidate in self._compiled(launch, settled, deadline):
            if not pins:
                compiled[pins] = candidate
            seconds = self._measure(function, kernel, pins, fields, candidate, best)
            self._step(kernel)
            if seconds is None:
                # A GPU that faulted does nothing more in this process, which
                # is an error here; the log says what not to try again.
                self._meter.seconds(function, compiled[""], 1)
                if pins:
                    continue
                raise RuntimeError(f"'{kernel}' fails with the heuristic's schedule")
            times[pins], compiled[pins] = seconds, candidate
            best = min(times.values())
        count = len(times)
        times = self._finals(function, times, compiled)
        choice = min(times, key=times.get)
        if times[choice] > times[""] * (1 - LEAST_GAIN):
            choice = ""
        return Outcome(
            function,
            kernel,
            choice,
            dict(candidates)[choice],
            times[""],
            times[choice],
            count,
            len(candidates),
        )

    def _compiled(self, launch, settled, deadline):
        """The candidates with their code, until time is up. The first, which is
        the heuristic's, comes in any case."""
        pool = Pool(self._workers)
        waiting = collections.deque()
        rest = iter(launch["candidates"])
        try:
            for index in itertools.count():
                if index and self._clock() >= deadline:
                    return
                # A few candidates are compiled ahead, so that little was done in vain
                # when time is up.
                while len(waiting) <= self._workers:
                    candidate = next(rest, None)
                    if candidate is None:
                        break
                    future = pool.submit(
                        self._compile, launch["function"], settled, candidate[0]
                    )
                    waiting.append((candidate, future))
                if not waiting:
                    return
                candidate, future = waiting.popleft()
                code = future.result()
                if code is not None:
                    yield candidate, code
        finally:
            pool.shutdown()

    def _compile(self, function, settled, pins):
        try:
            candidate = self._meter.compile(
                "; ".join([*settled, pins] if pins else settled)
            )
        except _bastile.CompileError as error:
            # A schedule that fits alone need not fit beside those of kernels before it.
            if pins:
                _channel.debug(
                    "%s: schedule '%s' does not fit: %s", function, pins, error
                )
                return None
            raise
        if (function, candidate.code) not in self._known:
            # The driver's compiler takes longer than Bastile's, so it runs here, in a
            # thread. Code that it rejects fails again when it is measured, which is
            # reported.
            with contextlib.suppress(RuntimeError):
                self._meter.prepare(function, candidate)
        return candidate

    def _measure(self, function, kernel, pins, fields, candidate, best):
        """Seconds, from the log if it has them; ``None`` for what does not run
        or is wrong."""
        known = self._known.get((function, candidate.code))
        # A candidate that was dropped for its spills may be the heuristic's choice now.
        if known is None or ("spilled_bytes" in known and not pins):
            self._meter.open(function)
            known = {
                "kind": "time",
                **self._context,
                "function": function,
                "kernel": kernel,
                "schedule": fields,
                "code": candidate.code,
                **self._try(function, kernel, pins, candidate, best),
            }
            self._log.append(known)
            self._known[function, candidate.code] = known
            if "error" in known:
                _channel.debug("%s: schedule '%s': %s", kernel, fields, known["error"])
        return known.get("seconds")

    def _try(self, function, kernel, pins, candidate, best):
        try:
            spilled = self._meter.spilled_bytes(function, kernel, candidate)
            # The heuristic's choice is what others are compared with.
            if spilled and pins:
                return {
                    "error": f"a thread spills {spilled} bytes",
                    "spilled_bytes": spilled,
                }
            difference = self._meter.difference(function, candidate)
            if not difference <= 1:
                return {"error": f"results differ by {difference:.3g} roundings"}
            # The first calls run with cold caches and a slow clock.
            self._meter.seconds(function, candidate, 2)
            samples = self._meter.seconds(function, candidate, 5)
            seconds = statistics.median(samples)
            if best is None or seconds < best * HOPELESS:
                more = max(5, min(40, int(0.02 / seconds)))
                samples += self._meter.seconds(function, candidate, more)
                seconds = statistics.median(samples)
            return {"seconds": seconds, "samples": len(samples)}
        except RuntimeError as error:
            return {"error": str(error)}

    def _finals(self, function, times, compiled):
        """Measures the best again in turn with the heuristic's: one that was
        lucky, or timed while the GPU was cool, is found out."""
        finalists = sorted(times, key=times.get)[:FINALISTS]
        if "" not in finalists:
            finalists.append("")
        if finalists == [""] or self._clock() >= self._deadline:
            return {pins: times[pins] for pins in finalists}
        samples = collections.defaultdict(list)
        for _ in range(FINAL_ROUNDS):
            for pins in finalists:
                repeat = max(5, min(40, int(0.02 / times[pins])))
                samples[pins] += self._meter.seconds(function, compiled[pins], repeat)
        return {pins: statistics.median(samples[pins]) for pins in finalists}
