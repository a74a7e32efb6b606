#!/bin/sh
# Creates what compose.yaml needs before its first start: a certificate authority, certificates, passwords, keys. Runs as
# the service `prepare`; each folder below ROOT is a volume of the service of that name. A second run changes nothing.
#   prepare.sh ROOT
set -eu
umask 077
cd "$1"
mkdir -p authority postgres gateway author oidc balancer

random() { openssl rand -hex 24; }
# once FILE COMMAND…: writes the command's output to the file, unless it exists.
once() {
  file="$1"
  shift
  [ -f "$file" ] || { "$@" > "$file.new" && mv "$file.new" "$file"; }
}

if [ ! -f authority/ca.crt ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 825 -subj '/CN=OSL Gateway in compose' \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout authority/ca.key -out authority/ca.new 2>/dev/null
  mv authority/ca.new authority/ca.crt
fi
# certificate FOLDER NAME…: a key and a certificate for these names and for this machine, in the folder.
certificate() {
  folder="$1"
  shift
  cp authority/ca.crt "$folder/ca.crt"
  [ ! -f "$folder/server.crt" ] || return 0
  names="DNS:localhost,IP:127.0.0.1"
  for name in "$@"; do names="$names,DNS:$name"; done
  printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth\nsubjectAltName=%s\n' \
    "$names" > "$folder/server.ext"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
    -keyout "$folder/server.key" -out "$folder/server.csr" 2>/dev/null
  openssl x509 -req -in "$folder/server.csr" -CA authority/ca.crt -CAkey authority/ca.key -CAcreateserial -days 825 \
    -extfile "$folder/server.ext" -out "$folder/server.new" 2>/dev/null
  mv "$folder/server.new" "$folder/server.crt"
  rm "$folder/server.csr" "$folder/server.ext"
}
certificate postgres postgres
certificate gateway gateway gateway1 gateway2 balancer
certificate oidc oidc
for who in author balancer; do cp authority/ca.crt "$who/ca.crt"; done
chmod 644 balancer/ca.crt

for role in postgres osl_owner osl_gateway osl_author osl_reader; do once "postgres/$role.password" random; done
# url FILE ROLE DATABASE: writes the connection URL of the role, with the trusted certificate authority.
url() {
  once "$1" printf 'postgres://%s:%s@postgres:5432/%s?sslmode=verify-full&sslrootcert=%s\n' \
    "$2" "$(cat "postgres/$2.password")" "$3" /run/osl/ca.crt
}
url gateway/store.url osl_reader shop
url gateway/control.url osl_gateway osl
url author/owner.url osl_owner osl
url author/author.url osl_author osl
# The keys of both gateways, as created by `osl keys make`.
mkdir -p gateway/keys
for key in signing masking; do once "gateway/keys/$key.key" openssl rand -base64 48; done
once gateway/keys/exchange.pem openssl genpkey -algorithm ed25519

# User IDs in the images: postgres, the gateway's node, Dex.
chown -R 999:999 postgres
chown -R 1000:1000 gateway author
chown -R 1001:1001 oidc
chmod 755 balancer
