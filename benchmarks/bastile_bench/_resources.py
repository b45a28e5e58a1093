# Part of Bastile, under the MIT License. See LICENSE.
"""What Bastile's kernels take of a multiprocessor, as rows have it in ``kernels``."""

from bastile_bench._report import Column


def of_directions(kernel, device) -> dict:
    """By direction, what the kernels that it runs take on GPU ``device``, in the variant
    for aligned tensors."""
    code = kernel._code(device)
    functions = [function["name"] for function in code.metadata["functions"]]
    forward, *others = [
        code.program.resources(device, function) for function in functions
    ]
    backward = [one for kernels in others for one in kernels]
    return {
        "inference": forward,
        "forward": forward,
        "backward": backward,
        "both": forward + backward,
    }


def _text(key):
    def text(row):
        return "+".join(str(kernel[key]) for kernel in row.get("kernels", ()))

    return text


def _occupancy(row):
    return "+".join(f"{one['occupancy']:.0%}" for one in row.get("kernels", ()))


def _spills(row):
    kernels = row.get("kernels", ())
    if not any(kernel["spilled_bytes"] for kernel in kernels):
        return "no" if kernels else ""
    return "+".join(str(kernel["spilled_bytes"]) for kernel in kernels)


COLUMNS = [
    Column("registers", _text("registers")),
    Column("shared B", _text("shared_bytes")),
    Column("spilled B", _spills),
    Column("occupancy", _occupancy),
]
