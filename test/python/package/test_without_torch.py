# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""NumPy alone: PyTorch is neither needed nor imported."""

import subprocess
import sys
import textwrap

BLOCK = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("torch is not here")

sys.meta_path.insert(0, Blocker())
"""


def run(code):
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_import_does_not_import_torch():
    run(
        """
        import sys
        import bastile
        assert "torch" not in sys.modules
        import numpy as np
        bastile.ops.silu(np.ones((2, 8), np.float32))
        assert "torch" not in sys.modules
        """
    )


def test_import_leaves_the_tuner_and_what_needs_torch_alone():
    run(
        """
        import sys
        before = set(sys.modules)
        import bastile
        rooms = {x.split(".", 1)[1] for x in sys.modules if x.startswith("bastile.")}
        assert {x for x in rooms if x.startswith("_tuning.")} == {"_tuning.gate"}
        known = {"_torch.gate", "_torch.followers"}
        assert {x for x in rooms if x.startswith("_torch.")} == known
        assert rooms.isdisjoint({"functional", "losses", "nn", "patching", "_patching"})
        # They take longer to import than all of the package's own modules.
        libraries = {"pathlib", "concurrent.futures", "statistics"}
        assert libraries.isdisjoint(set(sys.modules) - before)
        assert callable(bastile.autotune)
        """
    )


def test_works_without_torch():
    run(
        BLOCK
        + """
import bastile
import numpy as np
x = np.ones((2, 8), np.float32)
np.testing.assert_allclose(bastile.ops.softmax(x), x / 8, rtol=1e-6)
loss = bastile.ops.cross_entropy(x, np.zeros(2, np.int64), returns="loss")
np.testing.assert_allclose(loss, [np.log(8)], rtol=1e-6)
kernel = bastile.compile("silu", (None, 8), dtype="f32")
assert kernel(x).shape == (2, 8)
try:
    bastile.nn
except ImportError as error:
    assert "torch" in str(error)
else:
    raise AssertionError("bastile.nn without PyTorch")
assert not hasattr(bastile, "nothing")
"""
    )
