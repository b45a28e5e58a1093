# Part of Bastile, under the MIT License. See LICENSE.
"""Tensors of libraries without a C interface of DLPack: read, allocated and handed out.

The extension module turns here for every type that does not offer
``__dlpack_c_exchange_api__``: NumPy's arrays, PyTorch's tensors before 2.10, and
whatever has ``__cuda_array_interface__`` or ``__dlpack__`` (CuPy, JAX).
"""

from bastile import _bastile
from bastile._compiler import tensor_types


def describe(tensor):
    """What a kernel has to know of a tensor, as a tuple: its address, or None where it
    has no memory; the element type as MLIR spells it; sizes and strides in elements;
    the number of its GPU, or None for the CPU; and the object that keeps its memory
    alive.

    Raises ``TypeError`` for what is no dense tensor, ``ValueError`` for strides that
    are no multiple of an element.
    """
    for protocol, read in _PROTOCOLS:
        if hasattr(tensor, protocol):
            return read(tensor)
    if hasattr(tensor, "__dlpack__"):
        raise TypeError(
            "a kernel of Bastile takes tensors with values, but got a "
            f"{_full_name(tensor)}, which has none"
            + (_UNDER_JAX if _library(tensor) in ("jax", "jaxlib") else "")
        )
    raise TypeError(
        f"a kernel takes tensors, but got an object of type {_full_name(tensor)}"
    )


_UNDER_JAX = (
    ": jax.jit, jax.grad and jax.vmap cannot trace Bastile; call it outside of them, or "
    "by jax.pure_callback"
)


def _full_name(tensor):
    return f"{type(tensor).__module__}.{type(tensor).__qualname__}"


def _describe_torch(tensor):
    device = tensor.device
    if device.type not in ("cpu", "cuda", "meta"):
        raise TypeError(f"a kernel takes no tensors on '{device}'")
    kind = unusual_kind(tensor)
    if kind:
        raise TypeError(f"a kernel takes dense tensors, but got {kind}")
    return (
        None if device.type == "meta" else tensor.data_ptr(),
        tensor_types.element_type(tensor.dtype),
        tuple(tensor.shape),
        tensor.stride(),
        device.index if device.type == "cuda" else None,
        tensor,
    )


def unusual_kind(tensor):
    """What a tensor of PyTorch is whose elements do not lie as sizes and strides say;
    None if it is an ordinary one."""
    # Of a nested tensor little else may be asked.
    if tensor.is_nested:
        return "a nested one; its values() and a mask of rows are dense"
    if tensor.is_quantized:
        return f"a quantized one of {tensor.dtype}; dequantize() makes it dense"
    layout = str(tensor.layout)
    if layout != "torch.strided":
        return f"one of layout {layout}; to_dense() makes it dense"
    return None


def unreadable_kind(tensor):
    """What a tensor of PyTorch is whose memory PyTorch does not give away; None if that
    is not known."""
    import torch

    batched = torch._C._dispatch_key_parse("Batched")
    if torch._C._dispatch_keys(tensor).has(batched):
        return (
            "one of a batch, as of 'is_grads_batched=True', or of 'vectorize=True' in "
            "torch.autograd.functional.jacobian; compute one gradient after the other"
        )
    return unusual_kind(tensor)


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
    # NumPy shows elements that it has no type for, such as bfloat16, as opaque bytes;
    # the dtype has their name all the same.
    if typestr[0] == ">":
        raise TypeError(f"elements of type {typestr} are not of this byte order")
    kinds = {"f": "float", "i": "int", "b": "bool"}
    kind = kinds.get(typestr[1])
    if kind is None:
        return tensor_types.element_type(tensor.dtype)
    if kind == "bool":
        return tensor_types.element_type("bool")
    return tensor_types.element_type(f"{kind}{8 * int(typestr[2:])}")


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
    device = _cuda_device(tensor)
    stream = interface.get("stream")
    if stream is not None:
        # The library may still be working on the tensor in this stream. The numbers 1
        # and 2 stand for default streams.
        _bastile.synchronize_stream(device, 0 if stream in (1, 2) else stream)
    return _describe_interface(tensor, interface, device)


def _cuda_device(tensor):
    device = getattr(tensor, "device", None)
    if hasattr(device, "id"):
        return device.id
    if hasattr(tensor, "__dlpack_device__"):
        return int(tensor.__dlpack_device__()[1])
    return 0


_DLPACK_CUDA = 2


def _describe_dlpack(tensor):
    kind, device = tensor.__dlpack_device__()
    arguments = {}
    if int(kind) == _DLPACK_CUDA:
        # The library makes the stream that it is given wait for its own work on the
        # tensor. The number 0 is not allowed for one.
        arguments["stream"] = current_stream(int(device)) or 1
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:
        capsule = tensor.__dlpack__(**arguments)
    return _bastile.read_dlpack(capsule)


_PROTOCOLS = (
    ("data_ptr", _describe_torch),
    ("__array_interface__", _describe_array),
    ("__cuda_array_interface__", _describe_cuda),
    ("__dlpack_device__", _describe_dlpack),
)


def allocate(like, element, sizes, device):
    """A new tensor of ``sizes`` of the library that ``like`` belongs to, and its
    address. ``device`` is the number of a GPU, or None for the CPU."""
    if hasattr(like, "new_empty"):
        import torch

        dtype = getattr(torch, tensor_types.TORCH_NAMES[element])
        where = "cpu" if device is None else f"cuda:{device}"
        tensor = torch.empty(sizes, dtype=dtype, device=where)
        return tensor, tensor.data_ptr()
    if hasattr(like, "__array_interface__"):
        import numpy

        tensor = numpy.empty(sizes, dtype=_numpy_type(element))
        return tensor, tensor.ctypes.data
    if _library(like) == "cupy":
        import cupy

        with cupy.cuda.Device(device):
            tensor = cupy.empty(sizes, dtype=_numpy_type(element))
        return tensor, tensor.data.ptr
    tensor = _bastile.allocate(sizes, element, device)
    return tensor, tensor.address


def _library(tensor):
    return type(tensor).__module__.partition(".")[0]


def deliver(like, tensor):
    """The tensor that a caller gets, for one that `allocate` made and a kernel
    writes."""
    if not isinstance(tensor, _bastile.Array):
        return tensor
    kind, device = tensor.__dlpack_device__()
    if kind == _DLPACK_CUDA:
        # The library that takes the array does not know the stream that the kernel
        # writes it in.
        _bastile.synchronize_stream(device, current_stream(device))
    if _library(like) in ("jax", "jaxlib"):
        import jax

        return jax.dlpack.from_dlpack(tensor)
    return tensor


def _numpy_type(element):
    if element.startswith(("bf", "f8")):
        import ml_dtypes

        return getattr(ml_dtypes, tensor_types.TORCH_NAMES[element])
    return tensor_types.TORCH_NAMES[element]


def current_stream(device):
    """The number of the stream that PyTorch or CuPy works in on GPU ``device``; 0, the
    default stream, where neither is imported."""
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
    if hasattr(tensor, "__cuda_array_interface__"):
        return tensor.copy(order="C")
    raise ValueError(
        "the elements of each row have to follow one another, and a "
        f"{type(tensor).__qualname__} offers no way to copy them"
    )


def is_writable(tensor):
    """Whether kernels may write to a tensor of a caller: NumPy's arrays may forbid it,
    and JAX's always do. Of a library that is only known by ``__dlpack__`` it is not
    known."""
    if hasattr(tensor, "data_ptr") or isinstance(tensor, _bastile.Array):
        return True
    for protocol in ("__array_interface__", "__cuda_array_interface__"):
        if hasattr(tensor, protocol) and _library(tensor) not in ("jax", "jaxlib"):
            return not getattr(tensor, protocol)["data"][1]
    return False


class _Adapter:
    describe = staticmethod(describe)
    is_writable = staticmethod(is_writable)
    unreadable_kind = staticmethod(unreadable_kind)
    allocate = staticmethod(allocate)
    deliver = staticmethod(deliver)
    current_stream = staticmethod(current_stream)
    contiguous = staticmethod(contiguous)


_bastile.set_tensor_adapter(_Adapter)
