"""Tensors of libraries that have no C interface of DLPack.

The extension module turns here for every type that does not offer
``__dlpack_c_exchange_api__``: NumPy's arrays, PyTorch's tensors before 2.10, and
whatever has ``__cuda_array_interface__`` or ``__dlpack__`` (CuPy, JAX).
"""

from bastile import _bastile, _types


def describe(tensor):
    """(address, element type, sizes, strides, device or None, owner).

    Strides count elements. The owner keeps the memory alive.
    """
    for protocol, read in _PROTOCOLS:
        if hasattr(tensor, protocol):
            return read(tensor)
    raise TypeError(
        f"a kernel takes tensors, but got an object of type "
        f"{type(tensor).__module__}.{type(tensor).__qualname__}"
    )


def _describe_torch(tensor):
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        raise TypeError(f"a kernel takes no tensors on '{device}'")
    return (
        tensor.data_ptr(),
        _types.element_type(tensor.dtype),
        tuple(tensor.shape),
        tensor.stride(),
        device.index if device.type == "cuda" else None,
        tensor,
    )


def _describe_interface(tensor, interface, device):
    name = _interface_type(tensor, interface["typestr"])
    item = int(interface["typestr"][2:])
    sizes = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        strides = _contiguous(sizes)
    elif any(stride % item for stride in strides):
        raise ValueError(
            f"strides of {strides} bytes are no multiple of the element's {item}"
        )
    else:
        strides = tuple(stride // item for stride in strides)
    return interface["data"][0], name, sizes, strides, device, tensor


def _interface_type(tensor, typestr):
    # What NumPy has no type for is opaque bytes to it; its dtype has a name.
    if typestr[0] == ">":
        raise TypeError(f"elements of type {typestr} are not of this byte order")
    kinds = {"f": "float", "i": "int", "b": "bool"}
    kind = kinds.get(typestr[1])
    if kind is None:
        return _types.element_type(tensor.dtype)
    if kind == "bool":
        return _types.element_type("bool")
    return _types.element_type(f"{kind}{8 * int(typestr[2:])}")


def _contiguous(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _describe_array(tensor):
    return _describe_interface(tensor, tensor.__array_interface__, None)


def _describe_cuda(tensor):
    interface = tensor.__cuda_array_interface__
    device = getattr(getattr(tensor, "device", None), "id", 0)
    stream = interface.get("stream")
    if stream not in (None, 1):
        _await(stream)
    return _describe_interface(tensor, interface, device)


def _await(stream):
    """Waits for the work that may still write the tensor."""
    _bastile.synchronize_stream(stream)


def _describe_dlpack(tensor):
    return _bastile.describe_dlpack(tensor)


_PROTOCOLS = (
    ("data_ptr", _describe_torch),
    ("__array_interface__", _describe_array),
    ("__cuda_array_interface__", _describe_cuda),
    ("__dlpack__", _describe_dlpack),
)


def allocate(like, element, sizes, device):
    """A new tensor of the library of ``like`` and its address."""
    module = type(like).__module__.partition(".")[0]
    if hasattr(like, "new_empty"):
        import torch

        dtype = getattr(torch, _types.TORCH_NAMES[element])
        where = "cpu" if device is None else f"cuda:{device}"
        tensor = torch.empty(sizes, dtype=dtype, device=where)
        return tensor, tensor.data_ptr()
    if device is None:
        import numpy

        tensor = numpy.empty(sizes, dtype=_numpy_type(element))
        return tensor, tensor.ctypes.data
    if module == "cupy":
        import cupy

        with cupy.cuda.Device(device):
            tensor = cupy.empty(sizes, dtype=_numpy_type(element))
        return tensor, tensor.data.ptr
    return _bastile.allocate_on_gpu(sizes, element, device)


def _numpy_type(element):
    if element.startswith(("bf", "f8")):
        import ml_dtypes

        return getattr(ml_dtypes, _types.TORCH_NAMES[element])
    return _types.TORCH_NAMES[element]


def current_stream(device):
    """The stream that the tensors' library works in, as a number."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.cuda.current_stream(device).cuda_stream
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        return cupy.cuda.get_current_stream().ptr
    return 0


def contiguous(tensor):
    """A copy of a tensor with the elements of each row one after the other."""
    if hasattr(tensor, "contiguous"):
        return tensor.contiguous()
    if hasattr(tensor, "__array_interface__"):
        import numpy

        return numpy.ascontiguousarray(tensor)
    return tensor.copy(order="C")


class _Adapter:
    describe = staticmethod(describe)
    allocate = staticmethod(allocate)
    current_stream = staticmethod(current_stream)
    contiguous = staticmethod(contiguous)


_bastile.set_tensor_adapter(_Adapter)
