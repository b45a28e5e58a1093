#!/bin/sh
# Runs the numeric tests on this machine's GPU, and a selection under
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
for tool in memcheck racecheck synccheck initcheck; do
  for example in examples/*.mlir; do
    for options in --rows=127 "--rows=9 --offset=1" "--rows=5 --gap=3" \
        "--rows=300 --schedule=rows=1,threads=128,columns=1024,persistent=1" \
        "--rows=9 --schedule=rows=4,threads=384,columns=3072"; do
      # shellcheck disable=SC2086
      if "$sanitizer" --tool "$tool" --error-exitcode 9 \
          "$run" "$example" --target=gpu --check --repeat=0 $options \
          > sanitizer.log 2>&1; then
        echo "$tool $example $options: clean"
      else
        cat sanitizer.log
        echo "$tool $example $options: FAILED"
        rm -f sanitizer.log
        exit 1
      fi
    done
  done
done
rm -f sanitizer.log
