# Part of Bastile, under the MIT License. See LICENSE.
"""Random bits as `bastile.functions.random_bits` has them, in NumPy."""

import numpy as np


def philox(key, low, high):
    """Both words that Philox-2x32-10 (Salmon et al., SC 2011) makes of a key and the
    two words of a counter: uint32."""
    low, high, key = (np.asarray(n).astype(np.uint64) for n in (low, high, key))
    word = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        product = low * np.uint64(0xD256D193)
        low, high = (product >> np.uint64(32)) ^ key ^ high, product & word
        key = (key + np.uint64(0x9E3779B9)) & word
    return low.astype(np.uint32), high.astype(np.uint32)
