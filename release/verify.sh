#!/bin/sh
# Whether a release is what its maker signed: verify.sh FOLDER PUBLIC-KEY
# The key comes from elsewhere than the folder: SECURITY.md says from where.
set -eu
key="$(cd "$(dirname "$2")" && pwd)/$(basename "$2")"
cd "$1"
openssl dgst -sha256 -verify "$key" -signature SHA256SUMS.sig SHA256SUMS
sha256sum --check --strict --quiet SHA256SUMS
echo "every file is as it was signed"
