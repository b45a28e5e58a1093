#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Builds what is uploaded to a package index, and checks it:
#
#   scripts/release.sh [PYTHON ...]
#
# The source distribution comes first. Of it, unpacked, the wheel for each Python is
# built, and installed alone into a new environment of that Python, where it compiles
# and runs kernels (test/python/package/test_wheel.py). All that passed lies in
# build-release/dist. By default the Pythons are CPython 3.10 to 3.14, as python3.10 to
# python3.14 on PATH and as pyenv has them; for one that is missing no wheel is built,
# and the last lines say so.
#
# BASTILE_REPOSITORY is the address that the links of the package's page start with
# (python/wheel/package_page.py).
set -eu
cd "$(dirname "$0")/.."

build=build-release
venv=${BASTILE_BUILD:-build}/venv
versions="3.10 3.11 3.12 3.13 3.14"

# Prints the path of CPython $1, if there is one that runs: pyenv has commands that only
# say which version to choose.
find_python() {
  for python in "$(command -v "python$1")" \
                "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python"$1"; do
    if [ -x "$python" ] && "$python" -c '' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
}

missing=
if [ $# -eq 0 ]; then
  for version in $versions; do
    python=$(find_python "$version")
    if [ -n "$python" ]; then
      set -- "$@" "$python"
    else
      missing="$missing $version"
    fi
  done
fi

rm -rf "$build/dist" "$build/source"
mkdir -p "$build/dist" "$build/source"
sdist=$("$venv/bin/python" -c 'import sys, scikit_build_core.build
print(scikit_build_core.build.build_sdist(sys.argv[1]))' "$build/dist" | tail -n 1)
tar -xzf "$build/dist/$sdist" -C "$build/source"
# The folder's name has no version, so that the build folder serves the next one.
mv "$build/source"/bastile_mlir-* "$build/source/bastile_mlir"

for python in "$@"; do
  echo "== $("$python" --version), $python"
  scripts/build-wheels.sh --build "$build" --source "$build/source/bastile_mlir" \
    "$python" >/dev/null
  tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  BASTILE_WHEEL=$(echo "$build/dist"/bastile_mlir-*-"$tag-$tag"-*.whl) \
    BASTILE_WHEEL_PYTHON=$python \
    "$venv/bin/python" -m pytest -q -p no:cacheprovider \
    test/python/package/test_wheel.py
done

echo "== $build/dist"
ls -l "$build/dist"
for version in $missing; do
  echo "no wheel for CPython $version: there is no python$version on PATH or in pyenv" \
    "(pyenv install $version brings it)"
done
[ -n "${BASTILE_REPOSITORY:-}" ] ||
  echo "BASTILE_REPOSITORY is not set: the package's page has no links to documents"
