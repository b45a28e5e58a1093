# Part of Bastile, under the MIT License. See LICENSE.
"""What several tests of the benchmarks read."""

import pytest


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder that a run on the CPU writes, and the run's status."""
    from bastile_bench import __main__

    folder = tmp_path_factory.mktemp("results")
    status = __main__.main(
        "kernels --device cpu --ops rms_norm quantize_blocks cross_entropy --shapes "
        f"16x256 --providers bastile,torch --no-plots --out {folder}".split()
    )
    return folder, status
