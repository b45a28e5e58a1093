#!/bin/sh
# Part of Bastile, under the MIT License. See LICENSE.
#
# Packs into gpu-package/ what it takes to compile, run and test kernels on a
# GPU machine that has neither LLVM nor this checkout. There:
#   gpu-package/unpack.sh && gpu-package/scripts/gpu-test.sh .
set -eu
cd "$(dirname "$0")/.."

limit=40000000
package=gpu-package

make static
rm -rf "$package"
mkdir -p "$package/bin"
for tool in tilec tile-run call-batch; do
  strip -o "$package/bin/$tool" "build-static/bin/$tool"
  xz -T0 -9 "$package/bin/$tool"
done
for part in benchmarks examples python scripts/gpu-test.sh test/numerics; do
  if [ -e "$part" ]; then
    mkdir -p "$package/$(dirname "$part")"
    cp -R "$part" "$package/$part"
  fi
done
find "$package" -name __pycache__ -exec rm -r {} +

cat > "$package/unpack.sh" <<'EOF'
#!/bin/sh
# Unpacks the tools beside their archives in bin/.
set -eu
cd "$(dirname "$0")/bin"
for archive in *.xz; do
  tool=${archive%.xz}
  python3 -c 'import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], "wb"))' \
    "$archive" "$tool"
  chmod +x "$tool"
done
EOF
chmod +x "$package/unpack.sh"

size=$(du -sb "$package" | cut -f1)
echo "$package: $size bytes"
if [ "$size" -gt "$limit" ]; then
  echo "$package is over the limit of $limit bytes" >&2
  exit 1
fi
