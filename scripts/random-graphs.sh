#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# More random graphs than the tests have: scripts/random-graphs.sh COUNT FIRST, by
# default the 600 whose seeds begin at 1000000. Always the same ones, so that what
# fails is due to the change; other seeds find new mistakes (docs/testing.md).
set -eu
cd "$(dirname "$0")/.."

BASTILE_RANDOM_GRAPHS=${1:-600} BASTILE_RANDOM_GRAPHS_FIRST=${2:-1000000} \
  /usr/bin/python3 -m pytest -q -p no:cacheprovider \
  test/numerics/test_random_graphs.py::test_random_graphs
