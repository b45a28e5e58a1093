# Part of Bastile, under the MIT License. See LICENSE.
"""Running and timing calls on a device.

On a GPU, the calls of one measurement are captured in a CUDA graph and replayed, so
that the host's time is not in it. What cannot be captured runs call by call between
two events. On the CPU a call takes its wall time.
"""

import ctypes
import time

import torch

#: The bytes that a host's caches are taken to hold; a GPU is asked for its own.
_HOST_CACHE = 2_000_000


def open_device(name: str):
    """The device of a name as in ``"cpu"``, ``"cuda"`` or ``"cuda:1"``. Raises
    ``RuntimeError`` if it is not there."""
    if name == "cpu":
        return Cpu()
    if not torch.cuda.is_available():
        raise RuntimeError(
            "PyTorch finds no GPU; `bastile doctor` says why. --device cpu measures "
            "on the host"
        )
    return Cuda(name)


class Calls:
    """Calls in stages; the calls of a stage run one after the other."""

    #: How the device's time of the calls is taken.
    method = "wall"

    def __init__(self, stages):
        self.stages = stages

    def run_stage(self, index) -> list:
        """Runs the calls of a stage; returns their results but for Nones."""
        results = [call() for call in self.stages[index]]
        return [result for result in results if result is not None]

    def run(self) -> list:
        """Runs all stages; returns their results."""
        indices = range(len(self.stages))
        return [result for index in indices for result in self.run_stage(index)]

    def forget_results(self) -> None:
        """Frees the memory of the results that `run` returned last."""


class EventCalls(Calls):
    method = "events"


class Graph(Calls):
    """Calls that are replayed, each stage as a CUDA graph of its own. A replay writes
    its results to the memory that they had when the calls were captured."""

    method = "graph"

    def __init__(self, stages, pool, stream):
        super().__init__(stages)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for index in range(len(stages)):
                super().run_stage(index)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self._graphs = [torch.cuda.CUDAGraph() for _ in stages]
        # All results are kept while capturing, so that each has memory of its own.
        self._results = []
        for index, graph in enumerate(self._graphs):
            with torch.cuda.graph(graph, pool=pool, stream=stream):
                self._results.append(super().run_stage(index))

    def run_stage(self, index) -> list:
        self._graphs[index].replay()
        return self._results[index]

    def forget_results(self) -> None:
        """Lets later graphs of the pool use the memory of these results. That is safe,
        as each graph writes again what it reads."""
        self._results = [None] * len(self._graphs)


class Cpu:
    name = "cpu"
    cached_bytes = _HOST_CACHE
    #: How the device's time was measured, for titles of columns.
    device_time = "wall time, as there is no GPU"
    settling_seconds = 0.0

    def start_case(self) -> None:
        """Does nothing: the host's memory is freed by itself."""

    def capture(self, stages, can_capture=True) -> Calls:
        return Calls(stages)

    def seconds(self, calls: Calls, stage=0, behind: "Calls | None" = None) -> float:
        if behind is not None:
            behind.run_stage(stage)
        start = time.perf_counter()
        calls.run_stage(stage)
        return time.perf_counter() - start

    def flush(self) -> None:
        """Does nothing: calls take turns on more tensors than the caches hold."""

    def synchronize(self) -> None:
        """Does nothing: a call on the host has ended when it returns."""

    def peak_bytes(self, call) -> "int | None":
        """Runs the call; how much memory it needs is not known on the host."""
        call()


class Cuda:
    device_time = "CUDA graph replay"
    #: How long a GPU under load takes to reach the clock that it keeps.
    settling_seconds = 0.4

    def __init__(self, name):
        self.name = name
        device = torch.device(name)
        if device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        torch.cuda.set_device(device)
        #: The GPU's number.
        self.ordinal = device.index
        self.cached_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        count = 2 * self.cached_bytes
        self._pool = None
        self._stream = torch.cuda.Stream()
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._scratch = [
            torch.randint(256, (count,), dtype=torch.uint8, device=device)
            for _ in range(2)
        ]

    def start_case(self) -> None:
        """Frees the memory that earlier cases have cached."""
        torch.cuda.empty_cache()
        # Graphs of a case share memory, as one runs at a time.
        self._pool = torch.cuda.graph_pool_handle()

    def capture(self, stages, can_capture=True) -> Calls:
        """Graphs of the ``stages``, or where they cannot be captured, their calls."""
        if not can_capture:
            return EventCalls(stages)
        try:
            return Graph(stages, self._pool, self._stream)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            # After a capture that failed, its pool takes no other one.
            self._pool = torch.cuda.graph_pool_handle()
            torch.cuda.synchronize()
            return EventCalls(stages)

    def seconds(self, calls: Calls, stage=0, behind: "Calls | None" = None) -> float:
        """The seconds that a stage of ``calls`` takes on the device, run right behind
        the same stage of ``behind``."""
        if behind is not None:
            behind.run_stage(stage)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        calls.run_stage(stage)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    def flush(self) -> None:
        """Fills the L2 cache with the lines of a copy, so that the next call finds none
        of its operands there."""
        # Some kernels, such as those of torch.compile, mark the lines that they load to
        # be evicted last. Such lines outlast any copy, and the next provider would find
        # them.
        if self._driver.cuCtxResetPersistingL2Cache():
            raise RuntimeError("the driver cannot reset the lines that the L2 keeps")
        self._scratch[1].copy_(self._scratch[0])

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def peak_bytes(self, call) -> int:
        """The most memory that a call has at once beside its arguments."""
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before


def capture_copies(device, moved: float, count: int) -> list:
    """Calls of the driver's copy and of a copy by a kernel. Each reads and writes
    ``moved`` bytes together, of ``count`` sets of tensors in turn."""
    elements = max(1, int(moved) // 4)
    source = torch.randn(count, elements, device=device.name, dtype=torch.bfloat16)
    target = torch.empty_like(source)
    pairs = list(zip(source.unbind(), target.unbind()))
    return [
        device.capture([[lambda a=a, b=b: b.copy_(a) for a, b in pairs]]),
        device.capture([[lambda a=a, b=b: torch.neg(a, out=b) for a, b in pairs]]),
    ]
