#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Builds the wheel for each Python given, by default for that of build/venv:
#
#   scripts/build-wheels.sh ["path/to/python3.12" ...]
#
# They land in build-wheel/dist, with the platform that auditwheel finds them
# fit for. All Pythons share one build folder, so that each further one costs
# the extension module alone.
set -eu
cd "$(dirname "$0")/.."

build=build-wheel
venv=${BASTILE_BUILD:-build}/venv
platform=manylinux_2_35_x86_64
[ $# -gt 0 ] || set -- "$venv/bin/python"

fail() {
  echo "build-wheels: $1" >&2
  exit 1
}

[ -x "$venv/bin/auditwheel" ] || fail "no auditwheel in $venv: run make setup"
for python in "$@"; do
  tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])') ||
    fail "'$python' is no Python"
  # The packages that build the wheel are the interpreter's own, so that the
  # wheel has its tag.
  packager=$build/venv-$tag
  if ! cmp -s scripts/requirements.txt "$packager/requirements.txt"; then
    mkdir -p "$build"
    "$python" -m venv "$packager"
    grep -E '^(pybind11|scikit-build-core)==' scripts/requirements.txt |
      xargs "$packager/bin/pip" install -q --disable-pip-version-check
    cp scripts/requirements.txt "$packager/requirements.txt"
  fi
  raw=$build/raw-$tag
  rm -rf "$raw"
  "$packager/bin/pip" wheel -q --disable-pip-version-check --no-deps \
    --no-build-isolation --config-settings=build-dir="$build" -w "$raw" .
  rm -f "$build/dist/bastile_mlir-"*"-$tag-"*
  PATH="$venv/bin:$PATH" "$venv/bin/auditwheel" repair -z 9 \
    --plat "$platform" -w "$build/dist" "$raw"/bastile_mlir-*.whl
done
ls -l "$build/dist"
