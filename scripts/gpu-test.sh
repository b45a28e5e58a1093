#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Runs the numeric tests on this machine's GPU, and a selection of them under
# compute-sanitizer. Takes the folder that holds bin/tile-run: `build` by
# default, or an unpacked gpu-package.
set -eu
cd "$(dirname "$0")/.."
BASTILE_BUILD=$(realpath "${1:-build}")
export BASTILE_BUILD
export BASTILE_TEST_TARGET=gpu
run=$BASTILE_BUILD/bin/tile-run

python3 -m pytest -q -p no:cacheprovider ${PYTEST_FLAGS:-} test/numerics

sanitizer=$(command -v compute-sanitizer || true)
if [ -z "$sanitizer" ]; then
  echo "compute-sanitizer was not found: skipped"
  exit 0
fi
# sanitize TOOL FILE OPTIONS...
sanitize() {
  tool=$1
  shift
  if "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "$run" "$@" --target=gpu --repeat=0 > sanitizer.log 2>&1; then
    echo "$tool $*: clean"
  else
    cat sanitizer.log
    echo "$tool $*: FAILED"
    rm -f sanitizer.log
    exit 1
  fi
}

all=test/numerics/Inputs/all-ops.mlir
gradients=--grad=x,y,w,b
for tool in memcheck racecheck synccheck initcheck; do
  sanitize $tool $all $gradients --rows=37
  sanitize $tool $all $gradients --rows=9 --offset=1
  sanitize $tool $all $gradients --rows=5 --gap=3
  sanitize $tool $all --value-and-grad=x --in-place --rows=37
  for example in examples/*.mlir; do
    sanitize $tool "$example" --rows=300 \
      --schedule=rows=1,threads=128,columns=1024,persistent=1
    sanitize $tool "$example" --rows=9 \
      --schedule=rows=4,threads=384,columns=3072
  done
done
rm -f sanitizer.log
