#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Looks at what is written, not at what it does:
#
#   scripts/lint.sh [format] [tidy] [ruff] [types]
#
# by default all four. `tidy` looks at the C++ files that differ from LINT_BASE, by
# default where this branch left origin/main or, on that itself or without it, the
# commit before; with LINT_BASE=all at every file. It has LINT_SECONDS, by default 600,
# and says which files it had no time for. `types` takes a built package.
set -u
cd "$(dirname "$0")/.."

build=${BASTILE_BUILD:-build}
bin=$build/venv/bin
seconds=${LINT_SECONDS:-600}
status=0

check_format() {
  git ls-files -z --cached --others --exclude-standard '*.cpp' '*.h' |
    xargs -0 clang-format-22 --dry-run --Werror
}

# The revision to compare with; nothing in a clone of one commit.
find_base() {
  if [ -n "${LINT_BASE:-}" ]; then
    echo "$LINT_BASE"
    return
  fi
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse -q --verify HEAD~1 || true)
  fi
  echo "$base"
}

check_tidy() {
  base=$(find_base)
  if [ "$base" = all ]; then
    files=$(git ls-files 'dialect/*.cpp' 'passes/*.cpp' 'lib/*.cpp' \
      'runtime/*.cpp' 'tools/*.cpp')
  elif [ -n "$base" ]; then
    files=$(git diff --name-only --diff-filter=d "$base" -- 'dialect/*.cpp' \
      'passes/*.cpp' 'lib/*.cpp' 'runtime/*.cpp' 'tools/*.cpp')
  else
    echo "lint: no commit to compare with; LINT_BASE=all looks at all files"
    return 0
  fi
  end=$(($(date +%s) + seconds))
  found=0
  for file in $files; do
    left=$((end - $(date +%s)))
    if [ "$left" -le 0 ]; then
      echo "lint: no time for $file"
      continue
    fi
    timeout "$left" clang-tidy-22 --quiet -p "$build" "$file"
    case $? in
      0) ;;
      124) echo "lint: no time for $file" ;;
      *) found=1 ;;
    esac
  done
  return $found
}

check_ruff() {
  found=0
  "$bin/ruff" check --no-cache --quiet || found=1
  "$bin/ruff" format --no-cache --check || found=1
  return $found
}

# Pyright finds packages by the active environment.
run_pyright() {
  VIRTUAL_ENV=$build/venv PATH="$PWD/$bin:$bin:$PATH" "$bin/pyright" "$@"
}

# Every public name must have a type that no checker has to infer. This checks
# the package as built, which has the generated modules as well.
check_types() {
  found=0
  run_pyright || found=1
  if ! report=$(PYTHONPATH=$build/python \
    run_pyright --verifytypes bastile --ignoreexternal 2>&1); then
    echo "$report"
    found=1
  fi
  return $found
}

[ $# -gt 0 ] || set -- format tidy ruff types
for step in "$@"; do
  case $step in
    format | tidy | ruff | types) ;;
    *)
      echo "lint: there is no step '$step', but format, tidy, ruff and types" >&2
      exit 2
      ;;
  esac
  echo "lint: $step"
  "check_$step" || status=1
done
exit $status
