#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Writes the reference that is generated from TableGen, ops.md and passes.md,
# into the given folder.
set -eu

out=$1
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BASTILE_BUILD:-$root/build}
llvm=/usr/lib/llvm-22
[ -z "${MLIR_DIR:-}" ] || llvm=$(cd "$MLIR_DIR/../../.." && pwd)

tblgen() {
  "$llvm/bin/mlir-tblgen" -I "$root" -I "$build" -I "$llvm/include" "$@"
}

mkdir -p "$out"
tblgen -gen-dialect-doc -dialect=tile "$root/dialect/TileOps.td" > "$out/ops.md"
tblgen -gen-pass-doc "$root/passes/Passes.td" > "$out/passes.md"
