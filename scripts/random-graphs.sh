#!/bin/sh
# Random graphs that no commit before this one has had: scripts/random-graphs.sh
# COUNT, by default 1500. Prints their first seed, with which they can be had
# again (docs/testing.md).
set -eu
cd "$(dirname "$0")/.."

count=${1:-1500}
commits=$(git rev-list --count HEAD)
first=$((1000000 + commits * count))
echo "seeds from $first"
BASTILE_RANDOM_GRAPHS=$count BASTILE_RANDOM_GRAPHS_FIRST=$first \
  /usr/bin/python3 -m pytest -q -p no:cacheprovider \
  test/numerics/test_random_graphs.py -k test_random_graphs
