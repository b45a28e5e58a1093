#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Installs all packages that building and testing Bastile needs and the machine
# lacks. With everything in place it prints nothing and takes a few
# milliseconds.
#
# MLIR_DIR names another LLVM 22 than that of the system's packages, by its folder
# that has MLIRConfig.cmake.
set -eu

packages="
  cmake ninja-build g++ ccache
  libcurl4-openssl-dev libz3-dev libzstd-dev zlib1g-dev
  nlohmann-json3-dev libxxhash-dev libgtest-dev
  python3 python3-dev python3-venv python3-numpy python3-pytest
  xz-utils
"
llvm_packages="
  clang-22 libclang-rt-22-dev
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools lld-22
  clang-format-22 clang-tidy-22
"

# Prints a message, which may have several lines, and ends.
fail() {
  echo "setup: $1" >&2
  exit 1
}

# How to get an LLVM 22 that the build takes.
own_llvm="  make MLIR_DIR=/path/to/llvm/lib/cmake/mlir
with the folder of an LLVM 22 of your own. It is configured by
  cmake llvm -DLLVM_ENABLE_PROJECTS=mlir -DLLVM_TARGETS_TO_BUILD='X86;NVPTX' \\
    -DLLVM_BUILD_LLVM_DYLIB=ON -DLLVM_LINK_LLVM_DYLIB=ON -DLLVM_INSTALL_UTILS=ON \\
    -DCMAKE_BUILD_TYPE=Release"

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "not root and no sudo to install packages with"
  fi
}

if [ -n "${MLIR_DIR:-}" ]; then
  llvm=$(cd "$MLIR_DIR/../../.." 2>/dev/null && pwd) || llvm=
  if [ -z "$llvm" ] || [ ! -e "$MLIR_DIR/MLIRConfig.cmake" ]; then
    fail "there is no MLIRConfig.cmake in MLIR_DIR=$MLIR_DIR: it is the folder
lib/cmake/mlir of an installed LLVM 22"
  fi
  version=$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' \
            "$llvm/lib/cmake/llvm/LLVMConfigVersion.cmake" 2>/dev/null) || true
  case $version in
    22.*) ;;
    *) fail "LLVM 22 is needed, but MLIR_DIR=$MLIR_DIR is of ${version:-no version}" ;;
  esac
  for tool in FileCheck llvm-tblgen mlir-tblgen; do
    if [ ! -x "$llvm/bin/$tool" ]; then
      fail "$llvm/bin has no $tool. Run
$own_llvm"
    fi
  done
else
  llvm=/usr/lib/llvm-22
  packages="$packages $llvm_packages"
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "this system has no apt-get. Install what these packages of Debian have, and
run make with SETUP=true: $(echo $packages)
Without packages of LLVM 22, run
$own_llvm"
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
  unknown=
  for package in $missing; do
    if [ -z "$(apt-cache madison "$package")" ]; then
      unknown="$unknown $package"
    fi
  done
  system=$(. "${BASTILE_OS_RELEASE:-/etc/os-release}" && echo "$PRETTY_NAME") ||
    system="this system"
  case $unknown in
    "") ;;
    *-22*)
      fail "no package source of $system has$unknown.
Either add LLVM's own apt repository by its script llvm.sh, which sets up the
version that it is given, and run make again:
  sudo ./llvm.sh 22
Or run
$own_llvm" ;;
    *) fail "no package source of $system has$unknown (Ubuntu: add 'universe')" ;;
  esac
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

# What LLVM installs by itself lacks lit, which Debian's packages have.
lit=$llvm/bin/lit
if [ ! -e "$lit" ]; then
  lit=$(cd "$venv/bin" && pwd)/lit
  [ -e "$lit" ] || "$venv/bin/pip" install -q --disable-pip-version-check lit
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
    ln -s "$lit" "$bin/lit"
    echo "setup: linked $bin/lit to $lit"
  fi
  case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "setup: add $bin to PATH to run lit by its name" ;;
  esac
fi
