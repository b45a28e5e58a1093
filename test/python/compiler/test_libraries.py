# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Arrays of other libraries: NumPy's, and whatever speaks one of the protocols."""

import bastile
import numpy as np
import pytest
from bastile import _bastile, ops
from bastile._compiler import operators

ml_dtypes = pytest.importorskip("ml_dtypes")


def random(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def silu(x):
    x = x.astype(np.float64)
    return x / (1 + np.exp(-x))


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
)
def test_types(dtype):
    x = random(5, 24, dtype=dtype)
    y = ops.silu(x)
    assert isinstance(y, np.ndarray) and y.dtype == x.dtype
    tolerance = {2: 1e-2, 4: 1e-5, 8: 1e-12}[x.dtype.itemsize]
    np.testing.assert_allclose(
        y.astype(np.float64), silu(x), rtol=tolerance, atol=tolerance
    )


def test_eight_bit_floats():
    x = random(4, 32)
    small, scale = ops.quantize(x, results=("tensor<?x32xf8E4M3FN>", "tensor<?x1xf32>"))
    assert small.dtype == ml_dtypes.float8_e4m3fn
    back = ops.dequantize(small, scale, results="tensor<?x32xf32>")
    np.testing.assert_allclose(back, x, atol=0.07 * np.abs(x).max())


def test_strides():
    x = random(6, 48)
    for view in (x[::2], x[:, 3:27], x[::-1], x[:, ::2], x.T, np.asfortranarray(x)):
        np.testing.assert_allclose(ops.silu(view), silu(view), rtol=1e-5, atol=1e-6)
    repeated = np.broadcast_to(x[:1], (4, 48))
    np.testing.assert_allclose(ops.silu(repeated), silu(repeated), rtol=1e-5)


def test_read_only_arrays():
    x = random(4, 24)
    x.flags.writeable = False
    np.testing.assert_allclose(ops.silu(x), silu(x), rtol=1e-5, atol=1e-6)


def test_no_rows():
    assert ops.silu(np.empty((0, 24), np.float32)).shape == (0, 24)
    loss = ops.cross_entropy(
        np.empty((0, 24), np.float32), np.empty((0,), np.int64), returns="loss"
    )
    assert loss == [0]


def test_subclasses_and_memory_maps(tmp_path):
    x = random(4, 24)
    path = tmp_path / "x.npy"
    np.save(path, x)
    mapped = np.load(path, mmap_mode="r")
    np.testing.assert_array_equal(ops.silu(mapped), ops.silu(x))


def test_other_byte_order():
    with pytest.raises(TypeError, match="byte order"):
        ops.silu(random(4, 24).astype(">f4"))


class Interface:
    """Only `__array_interface__`."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


def test_array_interface():
    x = random(4, 24)
    y = ops.silu(Interface(x))
    np.testing.assert_array_equal(y, ops.silu(x))
    columns = Interface(np.asfortranarray(x))
    np.testing.assert_array_equal(ops.silu(columns), ops.silu(x))


class Dlpack:
    """Only DLPack, of either version."""

    def __init__(self, array, versioned=True):
        self.array = array
        self.versioned = versioned

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **arguments):
        if not self.versioned and "max_version" in arguments:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**arguments)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack(versioned):
    x = random(4, 24)
    before = bastile.compilations()
    y = ops.silu(Dlpack(x, versioned))
    assert isinstance(y, _bastile.Array)
    assert y.shape == (4, 24) and y.dtype == "f32"
    np.testing.assert_array_equal(np.from_dlpack(y), ops.silu(x))
    assert bastile.compilations() - before <= 1
    # And on into the next op.
    z = ops.swiglu(y, y)
    np.testing.assert_array_equal(
        np.from_dlpack(z), ops.swiglu(ops.silu(x), ops.silu(x))
    )


def test_dlpack_of_strides():
    x = random(8, 48)[::2, :24]
    np.testing.assert_array_equal(np.from_dlpack(ops.silu(Dlpack(x))), ops.silu(x))
    with pytest.raises(ValueError, match="no way to copy"):
        ops.silu(Dlpack(random(24, 4).T))


def test_results_through_dlpack_outlive_their_owner():
    array = np.from_dlpack(ops.silu(Dlpack(random(4, 24))))
    np.testing.assert_allclose(array, silu(random(4, 24)), rtol=1e-5, atol=1e-6)
    y = ops.silu(Dlpack(random(4, 24)))
    del array
    capsules = [y.__dlpack__(), y.__dlpack__(max_version=(1, 0))]
    del y, capsules
    torch = pytest.importorskip("torch")
    tensor = torch.from_dlpack(ops.silu(Dlpack(random(4, 24))))
    np.testing.assert_allclose(tensor, silu(random(4, 24)), rtol=1e-5, atol=1e-6)


def test_dlpack_that_is_none():
    class Wrong(Dlpack):
        def __dlpack__(self, **arguments):
            return 3

    with pytest.raises(TypeError, match="did not return a capsule"):
        ops.silu(Wrong(random(4, 24)))
    with pytest.raises(TypeError, match="no kernel takes elements"):
        ops.silu(Dlpack(random(4, 24).astype(np.uint16)))
    y = ops.silu(Dlpack(random(4, 24)))
    with pytest.raises(BufferError):
        y.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        y.__dlpack__(dl_device=(2, 0))


class BeforeExchange:
    """A tensor of PyTorch before 2.10, without DLPack's C interface."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __getattr__(self, name):
        if name == "__dlpack_c_exchange_api__":
            raise AttributeError(name)
        return getattr(self.tensor, name)


def test_pytorch_without_the_c_interface():
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 24, requires_grad=True)
    y = ops.silu(BeforeExchange(x))
    assert isinstance(y, torch.Tensor)
    torch.testing.assert_close(y, torch.nn.functional.silu(x).detach())
    columns = torch.randn(24, 4, dtype=torch.bfloat16).t()
    torch.testing.assert_close(
        ops.silu(BeforeExchange(columns)), torch.nn.functional.silu(columns)
    )


class Asking:
    """An array whose description forgets all kernels and calls an operator."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        for operator in operators.OPERATORS.values():
            operator.native.clear()
        ops.silu(self.array[:, :8])
        return self.array.__array_interface__


def test_arrays_that_run_python():
    x, y = random(4, 24), random(4, 24)
    for _ in range(3):
        np.testing.assert_allclose(ops.silu(Asking(x)), silu(x), rtol=1e-5, atol=1e-6)
        # The second operand is described behind the first.
        np.testing.assert_allclose(
            ops.swiglu(Asking(x), Asking(y)), silu(x) * y, rtol=1e-5, atol=1e-5
        )
