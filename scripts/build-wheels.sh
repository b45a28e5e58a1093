#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Builds the wheel for each Python given, by default for that of build/venv:
#
#   scripts/build-wheels.sh [--build FOLDER] [--source FOLDER] [PYTHON ...]
#
# They land in dist of the build folder (build-wheel), with the platform that
# auditwheel finds them fit for. The source is this checkout or the one given. All
# Pythons share the build folder, so that each further one costs the extension
# module alone.
#
# A wheel asks for no newer glibc than that of the oldest Python wheels in use, but it
# does so on a system such as Debian 12: headers of glibc 2.38 and later bring functions
# that python/wheel/OldGlibc.cpp does not know.
set -eu
cd "$(dirname "$0")/.."

build=build-wheel
source=.
venv=${BASTILE_BUILD:-build}/venv
platform=manylinux_2_28_$(uname -m)

fail() {
  echo "build-wheels: $1" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
  --build) build=$2; shift 2 ;;
  --source) source=$2; shift 2 ;;
  -*) fail "there is no option '$1'" ;;
  *) break ;;
  esac
done
[ $# -gt 0 ] || set -- "$venv/bin/python"

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
    --no-build-isolation --config-settings=build-dir="$PWD/$build" -w "$raw" "$source"
  rm -f "$build/dist/bastile_mlir-"*"-$tag-"*
  PATH="$venv/bin:$PATH" "$venv/bin/auditwheel" repair -z 9 --only-plat \
    --plat "$platform" -w "$build/dist" "$raw"/bastile_mlir-*.whl
done
ls -l "$build/dist"
