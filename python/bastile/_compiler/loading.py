# Part of Bastile, under the MIT License. See LICENSE.
"""Requests, and the code that is loaded for them, once in a process for each."""

import dataclasses
import functools
import json
import os
import threading
import time
import warnings
from typing import Any

from bastile import _bastile, _log
from bastile._compiler import schedules, tensor_types

_channel = _log.Channel("compiler")

#: What a request compiles for where nothing says otherwise and no GPU is there.
DEFAULT_GPU_TARGET = "sm_90"


@dataclasses.dataclass(frozen=True)
class Request:
    """What to compile; equal requests give the same code."""

    source: str
    target: str
    name: str = "source"
    schedule: str = ""
    gradients: tuple[str, ...] = ()
    together: bool = False
    in_place: bool = False
    #: Whether the first result is left out, beside which the gradients are computed.
    drop_value: bool = False

    def on(self, target: str) -> "Request":
        """The same request for another target."""
        return dataclasses.replace(self, target=target)

    def describe(self) -> dict[str, Any]:
        """What the source says as it stands, without being lowered (`describe_source` in
        include/bastile/TextCompiler.h): its functions with the names, element types and
        shapes of their inputs and outputs, its key, and whether it pins a schedule.

        Raises ``CompileError`` where the source is not valid.
        """
        return _describe_source(self.source, self.name)

    def summary(self) -> str:
        """One line for readers: the name, operands with the types of their rows,
        gradients and schedule.

        Raises ``CompileError`` where the source is not valid.
        """
        inputs = self.describe()["functions"][0]["inputs"]
        operands = (f"{x['name']}: {tensor_types.row_type(x)}" for x in inputs)
        text = f"{self.name}({', '.join(operands)})"
        if self.gradients:
            what = "value and gradients" if self.together else "gradients"
            text += f" with {what} of {', '.join(self.gradients)}"
        if self.schedule:
            text += f", schedule {self.schedule}"
        return text

    def to_text(self) -> str:
        """A string that `from_text` reads, the same in every process."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_text(text: str) -> "Request":
        fields = json.loads(text)
        return Request(**{**fields, "gradients": tuple(fields["gradients"])})

    def native(self) -> _bastile.Request:
        return _bastile.Request(
            self.source,
            self.target,
            name=self.name,
            schedule=self.schedule,
            gradients=list(self.gradients),
            together=self.together,
            in_place=self.in_place,
            drop_value=self.drop_value,
        )


@functools.lru_cache(maxsize=1024)
def _describe_source(source, name):
    return json.loads(_bastile.describe_source(source, name))


class Code:
    """The code of a request, PTX or an object of the host, with its metadata, and the
    program that is made of them. Where the code was compiled before, it comes out of
    the cache on disk."""

    def __init__(self, request: Request):
        self.request = request
        start = time.perf_counter()
        self._stored = _bastile.load(request.native())
        took = time.perf_counter() - start
        if self._stored.is_new and _channel.wants_info():
            _channel.info(
                "compiled %s for %s in %.0f ms",
                request.summary(),
                request.target,
                took * 1e3,
            )
        elif _channel.wants_debug():
            _channel.debug(
                "found %s for %s in the cache in %.1f ms",
                request.summary(),
                request.target,
                took * 1e3,
            )

    @functools.cached_property
    def metadata(self) -> dict:
        return json.loads(self._stored.metadata)

    @property
    def program(self):
        return self._stored.program

    def kernel(self, function: str | None = None):
        """A function of the program, by default the first."""
        program = self.program
        return _bastile.Kernel(
            program,
            function or program.functions[0],
            # Gradients that are returned without the value are results like others.
            together=self.request.together and not self.request.drop_value,
            in_place=self.request.in_place,
        )

    def report_left_out(self, device: int) -> None:
        """Says which variants GPU ``device`` cannot run, to whoever listens."""
        if _channel.wants_info():
            for line in self.program.left_out(device):
                _channel.info("%s", line)

    def prepare(self, device: int) -> None:
        """Loads all functions into a GPU ahead of their first call."""
        for function in self.program.functions:
            self.program.prepare(device, function)


def _warn(message):
    warnings.warn(message, RuntimeWarning, stacklevel=2)


_bastile.set_warning_handler(_warn)
_codes: dict = {}
_locks: dict = {}
_guard = threading.Lock()


def load(request: Request) -> Code:
    """The code of ``request``, compiled by the first of several threads."""
    return with_schedule(request, _load)


def with_schedule(request: Request, action):
    """The result of ``action`` on ``request``, with the schedule pinned that tuning
    found for it, if there is one."""
    if request.target == "host":
        return action(request)
    schedule = schedules.find(request, gpu_model(request.target))
    if not schedule:
        return action(request)
    try:
        return action(dataclasses.replace(request, schedule=schedule))
    except _bastile.CompileError as error:
        # A table may be older than the compiler, and its schedule not valid any more.
        result = action(request)
        _channel.info(
            "%s: its tuned schedule '%s' is not valid any more, and the compiler chooses "
            "one (%s)",
            request.name,
            schedule,
            error,
        )
        return result


def _load(request: Request) -> Code:
    code = _codes.get(request)
    if code is not None:
        return code
    with _guard:
        lock = _locks.setdefault(request, threading.Lock())
    with lock:
        if request not in _codes:
            with _compiling:
                _codes[request] = Code(request)
        return _codes[request]


class _Compiling:
    """Counts the threads that compile, so that `fork` can wait for them: a child
    would inherit the compiler's locks as they are, with nobody to open them."""

    def __init__(self):
        self.condition = threading.Condition()
        self.count = 0

    def __enter__(self):
        with self.condition:
            self.count += 1

    def __exit__(self, *error):
        with self.condition:
            self.count -= 1
            self.condition.notify_all()

    def before_fork(self):
        self.condition.acquire()
        while self.count:
            self.condition.wait()

    def after_fork_in_parent(self):
        self.condition.release()

    def after_fork_in_child(self):
        self.condition = threading.Condition()


_compiling = _Compiling()


def _after_fork_in_child():
    # A child has none of the other threads that may have held these locks.
    global _guard
    _guard = threading.Lock()
    _locks.clear()
    _compiling.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_compiling.before_fork,
        after_in_parent=_compiling.after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


@functools.cache
def gpu_model(target: str) -> str | None:
    """The model of the first GPU that ``target`` is for; ``None`` without one."""
    for device in range(_bastile.gpu_count()):
        gpu = _bastile.describe_gpu(device)
        best = _bastile.find_target(gpu["compute_capability"])
        # sm_90a is sm_90 with instructions of its own: the same GPU runs both.
        if best is not None and best.rstrip("a") == target.rstrip("a"):
            return gpu["name"]
    return None


@functools.cache
def gpu_target(device: int) -> str:
    """The target to compile for on GPU ``device``.

    Raises ``RuntimeError`` if there is no such GPU or it is too old.
    """
    gpu = _bastile.describe_gpu(device)
    target = _bastile.find_target(gpu["compute_capability"])
    if target is None:
        major, minor = divmod(gpu["compute_capability"], 10)
        raise RuntimeError(
            f"GPU {device}, {gpu['name']}, has compute capability "
            f"{major}.{minor}, but 8.0 is the least that kernels run on"
        )
    return target


def target_for(device: int | None) -> str:
    """The target for a GPU, or for the CPU where ``device`` is ``None``."""
    return "host" if device is None else gpu_target(device)
