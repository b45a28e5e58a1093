#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Compiles the examples to PTX and runs each on real data, its results compared
# with float64: on the host, and on a GPU where there is one.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BASTILE_BUILD:-$root/build}
PATH=$build/bin:$PATH
out=$build/demo
mkdir -p "$out"

targets=host
if /usr/bin/python3 -c 'import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
sys.exit(cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
         or not count.value)' 2>/dev/null; then
  targets="host gpu"
fi

for example in "$root"/examples/*.mlir; do
  name=$(basename "$example" .mlir)
  echo
  cat "$example"
  tilec "$example" -o "$out/$name.ptx"
  echo "=> $out/$name.ptx, $(wc -l < "$out/$name.ptx") lines of PTX"
done

# Every run prints the line of titles, and only the first is kept, to make one
# table.
echo
first=1
status=0
for target in $targets; do
  for name in geglu rms_norm add_rms_norm gated_norm gated_residual; do
    tile-run "$root/examples/$name.mlir" --target="$target" --check --rows=0,1,127,8192 \
      > "$out/table" || status=1
    tail -n "+$first" "$out/table"
    first=2
  done
done
rm -f "$out/table"

case $targets in
  host) echo && echo "No GPU found: the kernels ran on the host alone." ;;
esac
exit $status
