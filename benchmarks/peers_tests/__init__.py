# Part of Bastile, under the MIT License. See LICENSE.
"""The tests of Liger-Kernel and of QuACK, with Bastile's functions in the place of
theirs: ``python -m peers_tests liger CHECKOUT`` (docs/peers-tests.md).

`stand_ins` puts modules by the peer's names where its tests import them from; what is
in them is in the folders `liger` and `quack`. `plugin` is what pytest loads, `selection`
says which tests count, `misses` which are known not to pass, and `shards` runs them in
several processes.
"""
