#!/bin/sh
# Installs packages made by pack.sh: install.sh FOLDER PACKAGE…
set -eu
mkdir -p "$1"
cd "$1"
shift
[ -f package.json ] || printf '{ "private": true }\n' > package.json
npm install --omit=dev --no-audit --no-fund --prefer-offline --loglevel=warn "$@"
