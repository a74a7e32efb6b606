#!/bin/sh
# Compiles the proof in a temporary folder; prints what Coq prints, "Closed under the global context" if it is complete.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$here"/*.v "$dir"
cd "$dir"
for file in Values Plans Planner Guard Examples Extract; do coqc -Q . "" "$file.v"; done
