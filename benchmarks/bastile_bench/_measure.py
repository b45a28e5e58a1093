# Part of Bastile, under the MIT License. See LICENSE.
"""Measurements of one op on one shape, of all providers in turn."""

import dataclasses
import functools
import math
import time

import torch
from bastile_bench import _device, _errors, _inputs
from bastile_bench._statistics import summarize

#: What is timed: a call without gradients, one that records them, and one with its
#: backward. The backward alone is the difference of the last two.
KINDS = ("inference", "forward", "both")

#: The device's seconds that each measurement is given, and its rounds.
_SECONDS = 0.03
_ROUNDS = 5, 25
#: The wall's seconds that a block of calls should take, and its calls.
_BLOCK_SECONDS = 0.005
_BLOCK_CALLS = 5, 400


@dataclasses.dataclass(frozen=True)
class Case:
    op: object
    shape: tuple
    dtype: torch.dtype
    directions: tuple

    @property
    def kinds(self) -> tuple:
        """The calls that ``directions`` need."""
        wanted = set(self.directions)
        if "backward" in wanted:
            wanted |= {"forward", "both"}
        return tuple(kind for kind in KINDS if kind in wanted)

    def bytes(self, direction) -> int:
        return self.op.bytes(direction, self.shape, self.dtype.itemsize)


class Subject:
    """A provider in a case: its calls, and what was measured of them."""

    def __init__(self, case, loaded, function):
        self.case = case
        self.name = loaded.name
        self._function = function
        self.can_capture = loaded.can_capture(case.op.name)
        self.error = None
        self.graphs = {}
        self.device = {kind: [] for kind in case.kinds}
        self.wall = {kind: [] for kind in case.kinds}
        self.peak = {}
        self.errors = {}

    def call(self, kind, inputs):
        """Runs ``kind`` on ``inputs``: results, and gradients if it has any."""
        results = self._run(kind, inputs)
        return results, self._backward(results, inputs) if kind == "both" else ()

    def calls(self, kind, sets) -> list:
        return [lambda inputs=inputs: self.call(kind, inputs) for inputs in sets]

    def stages(self, kind, sets) -> list:
        """The same for all sets, but all forwards first and all backwards in a stage
        of their own: they shall not find in the cache what forwards left there."""
        if kind != "both":
            return [self.calls(kind, sets)]
        recorded = {}

        def forward(index):
            recorded[index] = self._run(kind, sets[index])

        def backward(index):
            results = recorded.pop(index)
            return results, self._backward(results, sets[index])

        indices = range(len(sets))
        return [
            [functools.partial(function, index) for index in indices]
            for function in (forward, backward)
        ]

    def _run(self, kind, inputs):
        with torch.set_grad_enabled(kind != "inference" and bool(inputs.gradients)):
            return _as_tuple(self._function(*inputs.tensors.values()))

    def _backward(self, results, inputs):
        if not inputs.gradients:
            return ()
        upstream = [x if x.dim() else None for x in inputs.upstream]
        return torch.autograd.grad(results, inputs.wanted(), upstream)

    def fail(self, error) -> None:
        # Memory that a failed provider still holds is missing to the others.
        self.graphs.clear()
        self.error = f"{type(error).__name__}: {error}".strip().splitlines()[0][:300]


def _as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def measure_case(case, providers, device) -> list:
    """The rows of a case: one for each direction and provider that has the op."""
    subjects = [
        Subject(case, loaded, loaded.function(case.op.name))
        for loaded in providers
        if loaded.function(case.op.name)
    ]
    device.start_case()
    for loaded in providers:
        loaded.start_case()
    largest = max(case.bytes(direction) for direction in case.directions)
    count = _inputs.count_sets(largest, device.cached_bytes)
    sets = [
        _inputs.make(case.op, case.shape, case.dtype, device.name) for _ in range(count)
    ]
    try:
        for subject in subjects:
            _guard(subject, device, _open_subject, sets, device)
        copies = {
            direction: _device.capture_copies(device, case.bytes(direction), count)
            for direction in case.directions
        }
        copy_times = _time_on_device(subjects, copies, sets, device)
        _time_wall(subjects, sets, device)
        return [
            _row(subject, direction, copy_times[direction], count)
            for direction in case.directions
            for subject in subjects
        ]
    finally:
        # A graph knows its subject: without this, memory would wait for the
        # garbage collector.
        for subject in subjects:
            subject.graphs.clear()


def failed_rows(case, providers, error) -> list:
    """The rows of a case whose tensors do not fit."""
    rows = []
    for loaded in providers:
        function = loaded.function(case.op.name)
        if function:
            subject = Subject(case, loaded, function)
            subject.fail(error)
            rows += [_row(subject, direction, (), 0) for direction in case.directions]
    return rows


def _guard(subject, device, action, *arguments):
    """Runs ``action`` for a subject; if it fails, the others go on.

    Raises ``RuntimeError`` where the device itself is lost.
    """
    if subject.error:
        return
    try:
        action(subject, *arguments)
    except Exception as error:  # whatever another library raises
        subject.fail(error)
        try:
            device.synchronize()
        except RuntimeError as lost:
            raise RuntimeError(
                f"{subject.name} on {subject.case.op.name} "
                f"{'x'.join(map(str, subject.case.shape))} broke the GPU's context, "
                f"nothing can run after it: {subject.error}"
            ) from lost


def _open_subject(subject, sets, device):
    """Warms up, measures memory, captures, and compares with the reference."""
    case = subject.case
    for kind in case.kinds:
        call = functools.partial(subject.call, kind, sets[0])
        call()
        subject.peak[kind] = device.peak_bytes(call)
        graph = device.capture(subject.stages(kind, sets), subject.can_capture)
        subject.errors.update(_check(subject, graph, sets[0]))
        graph.forget_results()
        subject.graphs[kind] = graph


def _check(subject, graph, inputs):
    """Errors of a run on fresh numbers into results that held NaN before."""
    inputs.refresh()
    given = inputs.clone()
    with torch.no_grad():
        for results in graph.run():
            _poison(results)
    inputs.restore(given)  # some results lie in the place of arguments
    results, gradients = map(_without_history, graph.run()[0])
    errors = _errors.find_errors(subject.case.op, given, results, gradients)
    for kind, error in errors.items():
        if not math.isfinite(error.largest):
            raise ValueError(f"its {kind} are not finite where those of float64 are")
    return errors


def _without_history(tensors):
    """The tensors behind autograd's back: some libraries return views of arguments,
    which it refuses to read once these were written to."""
    return [tensor.data for tensor in tensors]


def _poison(results):
    for tensors in results:
        for memory in _without_history(tensors):
            if memory.element_size() > 1:
                memory.fill_(float("nan"))
            else:
                memory.view(torch.uint8).fill_(0xFF)  # NaN of e4m3


def _time_on_device(subjects, copies, sets, device):
    """Fills in ``device`` of the subjects; returns the copies' seconds by
    direction."""
    copy_times = {direction: [] for direction in copies}

    def run_round():
        for direction, graphs in copies.items():
            copy_times[direction].append(
                [sum(_time_stages(graph, device)) for graph in graphs]
            )
        for subject in subjects:
            _guard(subject, device, _time_graphs, sets, device)

    started = time.perf_counter()
    run_round()
    spent = time.perf_counter() - started
    measured = len(copies) + sum(len(subject.graphs) for subject in subjects)
    rounds = _between(_SECONDS * measured / spent, _ROUNDS)
    # The first round warms up.
    for times in copy_times.values():
        times.clear()
    for subject in subjects:
        for times in subject.device.values():
            times.clear()
    for _ in range(rounds):
        run_round()
    return {direction: _faster(times) for direction, times in copy_times.items()}


def _time_graphs(subject, sets, device):
    for kind, graph in subject.graphs.items():
        for inputs in sets:
            inputs.refresh()
        subject.device[kind].append(_time_stages(graph, device))


def _time_stages(calls, device) -> list:
    """Seconds of each stage, none of which finds in the cache what it reads."""
    seconds = []
    for stage in range(len(calls.stages)):
        device.flush()
        seconds.append(device.seconds(calls, stage))
    return seconds


def _faster(times):
    """The samples of the copy whose median is the least."""
    return min(
        (list(samples) for samples in zip(*times)),
        key=lambda samples: summarize(samples)["median"],
    )


def _time_wall(subjects, sets, device):
    counts = {}
    for subject in subjects:
        for kind in list(subject.graphs):
            _guard(subject, device, _count_calls, kind, sets, device, counts)
    for _ in range(_ROUNDS[0] + 1):
        for subject in subjects:
            for kind in list(subject.graphs):
                count = counts.get((subject.name, kind))
                if count:
                    _guard(subject, device, _time_block, kind, sets, device, count)


def _count_calls(subject, kind, sets, device, counts):
    seconds = _block(subject, kind, sets, device, _BLOCK_CALLS[0])
    counts[subject.name, kind] = _between(_BLOCK_SECONDS / seconds, _BLOCK_CALLS)


def _time_block(subject, kind, sets, device, count):
    subject.wall[kind].append(_block(subject, kind, sets, device, count))


def _block(subject, kind, sets, device, count):
    """Seconds of a call when ``count`` of them are made back to back."""
    for inputs in sets:
        inputs.refresh()
    calls = subject.calls(kind, sets)
    device.synchronize()
    start = time.perf_counter()
    for index in range(count):
        calls[index % len(calls)]()
    device.synchronize()
    return (time.perf_counter() - start) / count


def _between(number, limits):
    return max(limits[0], min(limits[1], round(number)))


def _row(subject, direction, copy_seconds, count):
    case = subject.case
    row = {
        "op": case.op.name,
        "shape": list(case.shape),
        "dtype": str(case.dtype).removeprefix("torch."),
        "direction": direction,
        "provider": subject.name,
        "status": "failed" if subject.error else "ok",
    }
    if subject.error:
        return {**row, "error": subject.error}
    kind = "both" if direction == "backward" else direction
    device = [
        stages[-1] if direction == "backward" else sum(stages)
        for stages in subject.device[kind]
    ]
    copy = [seconds / count for seconds in copy_seconds]
    medians = [summarize(samples)["median"] for samples in (copy, device)]
    error = _error(subject.errors, direction)
    moved = case.bytes(direction)
    seconds = medians[1] / count
    row.update(
        device_us=_microseconds(seconds / count for seconds in device),
        wall_us=_microseconds(_wall(subject.wall, direction)),
        copy_us=_microseconds(copy),
        bytes=moved,
        gb_per_s=moved / seconds / 1e9,
        share=medians[0] / seconds,
        peak_bytes=subject.peak[kind],
        max_error=error.largest,
        norm_error=error.norm,
        rows_checked=case.shape[0],
        sets=count,
        method=subject.graphs[kind].method,
    )
    return row


def _error(errors, direction):
    if direction == "both":
        return _errors.worst(errors.values())
    return errors["gradients" if direction == "backward" else "results"]


def _wall(times, direction):
    if direction != "backward":
        return times[direction]
    return [both - forward for both, forward in zip(times["both"], times["forward"])]


def _microseconds(seconds):
    return summarize([1e6 * one for one in seconds])
