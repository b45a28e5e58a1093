"""What each kernel of a function takes of a GPU's multiprocessor: registers, shared
memory, local memory ("spills"), and how many blocks fit at once.

The driver says so of the PTX that it assembles, as it does when a kernel is loaded
for a call; without a GPU nobody does, and there is nothing to report.
"""

import ctypes
import dataclasses

# Of CUfunction_attribute and CUdevice_attribute.
_SHARED_BYTES, _LOCAL_BYTES, _REGISTERS = 1, 3, 4
_DYNAMIC_SHARED_BYTES = 8
_THREADS_OF_A_MULTIPROCESSOR = 39


@dataclasses.dataclass(frozen=True)
class Resources:
    kernel: str
    #: Threads of a block, and blocks of a cluster.
    threads: int
    cluster: int
    registers: int
    #: Bytes of a block, static and dynamic.
    shared_bytes: int
    #: Bytes of a thread that lie in memory instead of registers.
    spilled_bytes: int
    #: Blocks that a multiprocessor holds at once, and the share of its threads.
    blocks: int
    occupancy: float


class Driver:
    """The few calls of CUDA's driver that it takes. Raises ``OSError`` where there
    is no driver and ``RuntimeError`` with the driver's words."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def kernels_of(self, kernel, function: str) -> list:
        """The resources of each launch of ``function`` of a ``bastile.Kernel``, in
        its variant for aligned tensors. A context must be current."""
        (launches,) = (
            found["launches"]
            for found in kernel.metadata["functions"]
            if found["name"] == function
        )
        module = ctypes.c_void_p()
        self._check("cuModuleLoadData", ctypes.byref(module), kernel.ptx.encode())
        try:
            return [self._describe(module, launch) for launch in launches]
        finally:
            self._check("cuModuleUnload", module)

    def _describe(self, module, launch):
        variant = launch["variants"][0]
        entry = ctypes.c_void_p()
        name = variant["entry"].encode()
        self._check("cuModuleGetFunction", ctypes.byref(entry), module, name)
        dynamic = variant.get("shared_memory", 0)
        if dynamic:
            self._check("cuFuncSetAttribute", entry, _DYNAMIC_SHARED_BYTES, dynamic)
        threads = variant["block"]
        blocks = self._number(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            entry,
            threads,
            ctypes.c_size_t(dynamic),
        )
        return Resources(
            kernel=launch["kernel"],
            threads=threads,
            cluster=variant.get("cluster", 1),
            registers=self._attribute(entry, _REGISTERS),
            shared_bytes=self._attribute(entry, _SHARED_BYTES) + dynamic,
            spilled_bytes=self._attribute(entry, _LOCAL_BYTES),
            blocks=blocks,
            occupancy=blocks * threads / self._threads_of_a_multiprocessor(),
        )

    def _threads_of_a_multiprocessor(self):
        device = self._number("cuCtxGetDevice")
        return self._number(
            "cuDeviceGetAttribute", _THREADS_OF_A_MULTIPROCESSOR, device
        )

    def _attribute(self, entry, attribute):
        return self._number("cuFuncGetAttribute", attribute, entry)

    def _number(self, function, *arguments):
        value = ctypes.c_int()
        self._check(function, ctypes.byref(value), *arguments)
        return value.value

    def _check(self, function, *arguments):
        status = getattr(self._cuda, function)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'?').decode()}")


def kernels_by_direction(driver, op, kernel) -> dict:
    """The resources of the kernels that each direction of ``op`` runs, as
    dictionaries."""
    functions = [function["name"] for function in kernel.metadata["functions"]]
    found = {
        name: [dataclasses.asdict(one) for one in driver.kernels_of(kernel, name)]
        for name in functions
    }
    forward = found[functions[0]]
    backward = [one for name in functions[1:] for one in found[name]]
    return {
        "inference": forward,
        "forward": forward,
        "backward": backward,
        "both": forward + backward,
    }
