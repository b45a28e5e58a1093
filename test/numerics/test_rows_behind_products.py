# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Numbers of rows that a product's kernel computes of an argument, and what follows the
product with them."""

import pytest

from runner import target
from test_dots import check

PRODUCT = """
func.func @f(%x: tensor<{lead}?x48xbf16>, %w: tensor<{lead}72x48xbf16>, %r: tensor<{lead}?x1xbf16>) -> ({results}) {{
  %0 = tile.dot %x, %w contract [1, 1] : tensor<{lead}?x48xbf16>, tensor<{lead}72x48xbf16> -> tensor<{lead}?x72xf32>
  %1 = arith.extf %r : tensor<{lead}?x1xbf16> to tensor<{lead}?x1xf32>
  %2 = math.exp %1 : tensor<{lead}?x1xf32>
  %3 = tile.broadcast %2 like %0 : tensor<{lead}?x1xf32>, tensor<{lead}?x72xf32> -> tensor<{lead}?x72xf32>
  %4 = arith.mulf %0, %3 : tensor<{lead}?x72xf32>
  {more}
  return {values} : {results}
}}
"""

SCALED = "tensor<{lead}?x72xf32>"
#: What else the function computes of the numbers, its results, and their types.
CASES = {
    "scaled": ("", "%4", SCALED),
    # The product's kernel stores them.
    "returned": ("", "%4, %2", SCALED + ", tensor<{lead}?x1xf32>"),
    # A kernel on rows needs them, too.
    "rows": (
        """%wide = arith.extf %x : tensor<{lead}?x48xbf16> to tensor<{lead}?x48xf32>
  %sum = tile.reduce add %wide : tensor<{lead}?x48xf32> -> tensor<{lead}?x1xf32>
  %5 = arith.mulf %sum, %2 : tensor<{lead}?x1xf32>""",
        "%4, %5",
        SCALED + ", tensor<{lead}?x1xf32>",
    ),
    # They depend on rows that another kernel reduces.
    "normed": (
        """%wide = arith.extf %x : tensor<{lead}?x48xbf16> to tensor<{lead}?x48xf32>
  %sum = tile.reduce max %wide : tensor<{lead}?x48xf32> -> tensor<{lead}?x1xf32>
  %both = arith.mulf %sum, %2 : tensor<{lead}?x1xf32>
  %repeated = tile.broadcast %both like %4 : tensor<{lead}?x1xf32>, tensor<{lead}?x72xf32> -> tensor<{lead}?x72xf32>
  %5 = arith.mulf %4, %repeated : tensor<{lead}?x72xf32>""",
        "%5",
        SCALED,
    ),
}


#: How products run: as the target has it, and as each kind of GPU has it.
PLACES = [()]
if target() == "host":
    PLACES += [("--target=sm_90a", "--emulate"), ("--target=sm_80", "--emulate")]


@pytest.mark.long(every=5)
@pytest.mark.parametrize("lead", ["", "?x"])
@pytest.mark.parametrize("grad", [(), ("--grad",)])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CASES)
def test_rows_behind_products(name, place, grad, lead):
    more, values, results = CASES[name]
    source = PRODUCT.format(
        lead=lead,
        more=more.format(lead=lead),
        values=values,
        results=results.format(lead=lead),
    )
    batch = "2x" if lead else ""
    shapes = {"x": "37x48", "w": "72x48", "r": "37x1"}
    check(
        source,
        *place,
        *grad,
        *(f"--shape={key}={batch}{size}" for key, size in shapes.items()),
    )
