#!/bin/sh
# Removes what Node never loads from an installation made by install.sh: prune.sh FOLDER
# Types, the source maps of other packages, and their tests. Our own source maps stay, for stack traces.
set -eu
cd "$1/node_modules"
find . -type f \( -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete
find . -type f -name '*.map' ! -path './osl-gateway/*' ! -path './osl-compiler/*' -delete
find . -type d \( -name test -o -name tests -o -name benchmark -o -name benchmarks -o -name .github \) \
  ! -path './osl-gateway/*' ! -path './osl-compiler/*' -prune | while read -r folder; do
  # Only directly in a package: elsewhere the name may be that of a module.
  if [ -f "$(dirname "$folder")/package.json" ]; then rm -rf "$folder"; fi
done
