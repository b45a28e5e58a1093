#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Installs all packages that building and testing Bastile needs and the machine
# lacks. With everything in place it prints nothing and takes a few
# milliseconds.
set -eu

llvm=/usr/lib/llvm-22

packages="
  cmake ninja-build g++ clang-22 libclang-rt-22-dev ccache
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools lld-22
  clang-format-22 clang-tidy-22
  libcurl4-openssl-dev libz3-dev libzstd-dev zlib1g-dev
  nlohmann-json3-dev libxxhash-dev libgtest-dev
  python3 python3-dev python3-venv python3-numpy python3-pytest
  xz-utils
"

fail() {
  echo "setup: $1" >&2
  echo "Bastile builds on Debian 12 with these packages (elsewhere, install" >&2
  echo "their equivalents and run make with SETUP=true):" $packages >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "not root and no sudo to install packages with"
  fi
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "this system has no apt-get"
fi

# dpkg-query fails when it does not know a package at all; the list it prints
# is what counts.
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $packages \
            2>/dev/null || true)
missing=
for package in $packages; do
  case "
$installed
" in
    *"
$package installed
"*) ;;
    *) missing="$missing $package" ;;
  esac
done

if [ -n "$missing" ]; then
  echo "setup: installing$missing"
  as_root apt-get update -q
  for package in $missing; do
    if [ -z "$(apt-cache madison "$package")" ]; then
      fail "no package source of this system has $package"
    fi
  done
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends $missing
fi

# The Python package is built and tested in an environment of its own.
venv=${BASTILE_BUILD:-build}/venv
requirements=$(dirname "$0")/requirements.txt
if [ ! -e "$venv/requirements.txt" ] ||
   ! cmp -s "$requirements" "$venv/requirements.txt"; then
  echo "setup: installing Python packages into $venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$venv/requirements.txt"
fi

# Patches of models are also tested with Transformers 4.
older=${BASTILE_BUILD:-build}/transformers-4
requirements=$(dirname "$0")/requirements-transformers4.txt
if [ ! -e "$older/requirements.txt" ] ||
   ! cmp -s "$requirements" "$older/requirements.txt"; then
  echo "setup: installing Transformers 4 into $older"
  rm -rf "$older"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps \
    --target "$older" -r "$requirements"
  cp "$requirements" "$older/requirements.txt"
fi

# Debian installs lit under a versioned name only, and `lit test/` is how one
# test is run by hand.
if ! command -v lit >/dev/null; then
  if [ "$(id -u)" -eq 0 ]; then
    bin=/usr/local/bin
  else
    bin=$HOME/.local/bin
  fi
  if [ ! -e "$bin/lit" ]; then
    mkdir -p "$bin"
    ln -s "$llvm/bin/lit" "$bin/lit"
    echo "setup: linked $bin/lit to $llvm/bin/lit"
  fi
  case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "setup: add $bin to PATH to run lit by its name" ;;
  esac
fi
