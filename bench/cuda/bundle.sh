#!/usr/bin/env bash
# bundle.sh OUT PROGRAM...: programs, stripped, with the shared libraries that a bare machine may lack, for a machine that
# has the card but no build. Run them as: LD_LIBRARY_PATH=OUT/lib OUT/PROGRAM
set -euo pipefail
out=$1
shift
mkdir -p "$out/lib"
for program in "$@"; do
  strip -o "$out/$(basename "$program")" "$program"
  ldd "$program" | awk '$3 ~ /^\// {print $3}' |
    { grep -Ev '/(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|librt)\.so' || true; } |
    while read -r library; do cp -nL "$library" "$out/lib/"; done
done
strip --strip-unneeded "$out"/lib/*.so* 2>/dev/null || true
