#!/bin/sh
# Packs this built checkout into tarballs: pack.sh FOLDER
set -eu
mkdir -p "$1"
node dist/release/bundle.js
npm pack -w compiler --pack-destination "$1" --ignore-scripts --loglevel=warn
npm pack --pack-destination "$1" --ignore-scripts --loglevel=warn
