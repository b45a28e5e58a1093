# Part of Bastile, under the MIT License. See LICENSE.
"""How long the first call of a program takes in a new process: ``python -m
bastile_bench._first_call NAME`` prints its milliseconds.

`measure` runs that twice. First all caches are empty: the call compiles the program's
text to PTX, and the driver compiles that. Then Bastile's cache has the PTX, and the
driver's is empty again.
"""

import os
import subprocess
import sys
import tempfile
import time

#: Sizes of small operands of each program, of which the last is 64 or 128 for attention.
_OPERANDS = {
    "product": ((256, 256), (256, 256), (256,)),
    "gated_product": ((256, 256), (256, 256), (256, 256), (256,), (256,)),
    "split_product": ((256, 256), (256, 256)),
    "flash_64": ((1, 2, 256, 64),) * 3,
    "flash_128": ((1, 2, 256, 128),) * 3,
}
NAMES = tuple(_OPERANDS)


def measure(name: str) -> dict:
    """Milliseconds of the first call, ``first_ms``, and of it the driver's compilation
    and the launch, ``driver_ms``."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "CUDA_CACHE_DISABLE": "1",
            "BASTILE_CACHE_DIR": folder,
        }
        command = [sys.executable, "-m", "bastile_bench._first_call", name]
        first, again = (
            float(
                subprocess.run(
                    command, env=environment, check=True, capture_output=True, text=True
                ).stdout
            )
            for _ in range(2)
        )
    return {"first_ms": first, "driver_ms": again}


def main() -> None:
    import torch
    from bastile_bench._commands import tensor_cores

    operands = [
        torch.randn(sizes, device="cuda").bfloat16() for sizes in _OPERANDS[sys.argv[1]]
    ]
    torch.cuda.synchronize()
    start = time.perf_counter()
    tensor_cores.compiled(sys.argv[1])(*operands)
    torch.cuda.synchronize()
    print(1e3 * (time.perf_counter() - start))


if __name__ == "__main__":
    main()
