#!/bin/sh
# Three gateways behind HAProxy on this machine, with a control database and its standby, and if told so Citus with two
# workers for the data: to try out how a cluster behaves. All of it listens on loopback, and Postgres asks for no
# password. See docs/operations.md.
set -eu

usage() {
  cat >&2 <<TEXT
usage: cluster.sh COMMAND

  up MANIFEST POLICY   create the cluster and start it
  down                 stop all of it; \`up\` needs another directory then
  start|stop|kill NAME one part; kill: SIGKILL. NAME: gateway-1, gateway-2, gateway-3, haproxy, primary, standby,
                       coordinator, worker-1, worker-2
  restart gateway-N    drain it in the balancer, stop, start
  roll                 restart all gateways, one after another
  promote              have the standby take the place of a primary that is gone

Environment: CLUSTER_DIR (./cluster), CLUSTER_PORT (20000, the first of 33 ports), OSL (osl, the command),
CLUSTER_CITUS (the programs of a Postgres that has Citus; unset: no Citus).
Two files in CLUSTER_DIR, if they are there: \`env\` sets variables of the gateways, such as URLs of connectors; psql
runs \`data.sql\` on the new coordinator of Citus, or else on the new primary, as superuser.
TEXT
  exit 2
}

HERE=$(cd "$(dirname "$0")" && pwd)
DIR=${CLUSTER_DIR:-$PWD/cluster}
FIRST=${CLUSTER_PORT:-20000}
OSL=${OSL:-osl}
REST=$FIRST
WIRE=$((FIRST + 1))
PRIMARY=$((FIRST + 2))
STANDBY=$((FIRST + 3))
STATS=$((FIRST + 4))
COORDINATOR=$((FIRST + 5))
CITUS_PARTS="coordinator worker-1 worker-2"
http_port() { echo $((FIRST + 10 * $1)); }
pg_port() { echo $((FIRST + 10 * $1 + 1)); }
admin_port() { echo $((FIRST + 10 * $1 + 2)); }

CONTROL=postgres://osl_gateway@127.0.0.1:$PRIMARY,127.0.0.1:$STANDBY/control
OSL_CONTROL_URL=$CONTROL
OSL_POLICY_SOURCE=control
OSL_KEYS_DIR=$DIR/keys
export OSL_CONTROL_URL OSL_POLICY_SOURCE OSL_KEYS_DIR

newest_postgres() { ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1; }
PG=${CLUSTER_PG:-$(newest_postgres)}
CITUS=${CLUSTER_CITUS:-}

# Postgres refuses to run as root.
as_postgres() {
  if [ "$(id -u)" = 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

start_postgres() {
  case $1 in primary | standby) bin=$PG ;; *) bin=$CITUS ;; esac
  as_postgres "$bin/pg_ctl" -D "$DIR/postgres/$1" -l "$DIR/postgres/$1.log" -w start >/dev/null
}

create_postgres() {
  mkdir -p "$DIR/postgres"
  if [ "$(id -u)" = 0 ]; then
    chown postgres "$DIR/postgres"
    chmod a+x "$DIR"
  fi
  as_postgres "$PG/initdb" -D "$DIR/postgres/primary" -U postgres -A trust -E UTF8 --locale=C.UTF-8 >/dev/null
  settings=$DIR/postgres/primary/postgresql.conf
  cat >>"$settings" <<TEXT
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
port = $PRIMARY
shared_buffers = 32MB
wal_keep_size = 256MB
TEXT
  start_postgres primary
  sql postgres "create role osl_gateway login; create role osl_reader login"
  sql postgres "create database control owner osl_gateway"
  as_postgres "$PG/pg_basebackup" -d "postgres://postgres@127.0.0.1:$PRIMARY/?application_name=standby" \
    -D "$DIR/postgres/standby" -R -X stream -c fast
  echo "port = $STANDBY" >>"$DIR/postgres/standby/postgresql.conf"
  start_postgres standby
  # A commit is acknowledged once the standby has it too. While the standby is away, publishing waits and fails.
  sql postgres "alter system set synchronous_standby_names = 'standby'"
  sql postgres "select pg_reload_conf()"
}

sql() {
  "$PG/psql" -X -q -v ON_ERROR_STOP=1 "postgres://postgres@127.0.0.1:$PRIMARY/$1" -c "$2" >/dev/null
}

# A coordinator and two workers, each a server with Citus, in the database `postgres`.
create_citus() {
  n=0
  for name in $CITUS_PARTS; do
    as_postgres "$CITUS/initdb" -D "$DIR/postgres/$name" -U postgres -A trust -E UTF8 --locale=C.UTF-8 >/dev/null
    cat >>"$DIR/postgres/$name/postgresql.conf" <<TEXT
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
port = $((COORDINATOR + n))
shared_buffers = 32MB
max_connections = 300
shared_preload_libraries = 'citus'
citus.node_conninfo = 'sslmode=disable'
citus.enable_statistics_collection = off
TEXT
    start_postgres "$name"
    citus $((COORDINATOR + n)) "create extension citus"
    n=$((n + 1))
  done
  citus "$COORDINATOR" "select citus_set_coordinator_host('127.0.0.1', $COORDINATOR)"
  for n in 1 2; do citus "$COORDINATOR" "select citus_add_node('127.0.0.1', $((COORDINATOR + n)))"; done
  citus "$COORDINATOR" "create role osl_reader login"
}

# Runs a statement on the server of Citus that listens on port $1.
citus() {
  "$PG/psql" -X -q -v ON_ERROR_STOP=1 "postgres://postgres@127.0.0.1:$1/postgres" -c "$2" >/dev/null
}

start_gateway() {
  (
    set -a
    if [ -f "$DIR/env" ]; then . "$DIR/env"; fi
    OSL_HTTP_PORT=$(http_port "$1")
    OSL_PG_PORT=$(pg_port "$1")
    OSL_ADMIN_PORT=$(admin_port "$1")
    exec $OSL serve --manifest "$DIR/manifest.yaml" --data-dir "$DIR/gateway-$1" \
      >>"$DIR/gateway-$1.log" 2>&1
  ) &
  echo $! >"$DIR/gateway-$1.pid"
  until_answers "$(http_port "$1")" /health "gateway-$1"
}

start_haproxy() {
  for n in 1 2 3; do
    export "HTTP_$n=$(http_port $n)" "PG_$n=$(pg_port $n)"
  done
  export REST WIRE STATS
  haproxy -db -f "$HERE/haproxy.cfg" >>"$DIR/haproxy.log" 2>&1 &
  echo $! >"$DIR/haproxy.pid"
  until_ready "$REST" haproxy
}

# Waits up to a minute until what listens on port $1 says that it is ready; $2 is its name.
until_ready() {
  until_answers "$1" /ready "$2"
}

# The same of any path, $2; $3 is the name.
until_answers() {
  for _ in $(seq 300); do
    if curl -fs -o /dev/null "http://127.0.0.1:$1$2"; then return; fi
    sleep 0.2
  done
  echo "$3 does not answer at $2: see $DIR/$3.log" >&2
  exit 1
}

pid_of() {
  case $1 in
    primary | standby | coordinator | worker-[12]) head -n 1 "$DIR/postgres/$1/postmaster.pid" 2>/dev/null ;;
    gateway-[123] | haproxy) cat "$DIR/$1.pid" 2>/dev/null ;;
    *) usage ;;
  esac
}

start() {
  case $1 in
    primary | standby | coordinator | worker-[12]) start_postgres "$1" ;;
    gateway-[123]) start_gateway "${1#gateway-}" ;;
    haproxy) start_haproxy ;;
    *) usage ;;
  esac
}

# Sends a signal and waits until the process is gone.
stop() {
  pid=$(pid_of "$2") || return 0
  kill -s "$1" "$pid" 2>/dev/null || return 0
  while kill -0 "$pid" 2>/dev/null; do
    if [ "$(ps -o stat= -p "$pid" | cut -c 1)" = Z ]; then return 0; fi
    sleep 0.1
  done
}

# Sends a command to the balancer.
balancer() {
  echo "$1" | curl -s --max-time 5 "telnet://127.0.0.1:$STATS"
}

# Waits until the balancer has seen by its checks that gateway-$1 is ready, over both ports.
until_up() {
  for _ in $(seq 150); do
    if [ "$(balancer 'show stat' | grep -c "^\(rest\|wire\),gateway-$1,.*,UP,")" = 2 ]; then return; fi
    sleep 0.2
  done
  echo "the balancer does not find gateway-$1 ready: see $DIR/haproxy.log; the gateway says:" >&2
  curl -s --max-time 5 "http://127.0.0.1:$(http_port "$1")/ready" >&2 || true
  tail -n 5 "$DIR/gateway-$1.log" >&2
  exit 1
}

# The balancer is told first: by its checks alone it would notice a second later, and send new sessions meanwhile.
# Postgres sessions that are open end after their statement, with 57P01.
restart_gateway() {
  for n in 1 2 3; do until_up $n; done
  balancer "set server rest/gateway-$1 state drain; set server wire/gateway-$1 state drain"
  stop TERM "gateway-$1"
  start_gateway "$1"
  until_ready "$(http_port "$1")" "gateway-$1"
  balancer "set server rest/gateway-$1 state ready; set server wire/gateway-$1 state ready"
  until_up "$1"
}

up() {
  if [ -e "$DIR/postgres" ]; then
    echo "there is a cluster in $DIR already" >&2
    exit 2
  fi
  mkdir -p "$DIR"
  cp "$1" "$DIR/manifest.yaml"
  cp "$2" "$DIR/policy.yaml"
  create_postgres
  data=$PRIMARY
  if [ -n "$CITUS" ]; then
    create_citus
    data=$COORDINATOR
  fi
  if [ -f "$DIR/data.sql" ]; then
    "$PG/psql" -X -q -v ON_ERROR_STOP=1 "postgres://postgres@127.0.0.1:$data/postgres" -f "$DIR/data.sql" >/dev/null
  fi
  $OSL keys make "$OSL_KEYS_DIR" >/dev/null
  $OSL control migrate >/dev/null
  $OSL policy push "$DIR/policy.yaml" --manifest "$DIR/manifest.yaml" --activate >/dev/null
  for n in 1 2 3; do start_gateway $n; done
  start_haproxy
  echo "REST http://127.0.0.1:$REST, Postgres port $WIRE, control database $CONTROL"
  if [ -n "$CITUS" ]; then echo "Citus postgres://osl_reader@127.0.0.1:$COORDINATOR/postgres"; fi
}

down() {
  for name in haproxy gateway-1 gateway-2 gateway-3; do stop TERM $name; done
  for name in standby primary; do stop INT $name; done
  if [ -n "$CITUS" ]; then for name in $CITUS_PARTS; do stop INT "$name"; done; fi
}

case ${1:-} in
  up) [ $# = 3 ] || usage; up "$2" "$3" ;;
  down) down ;;
  start) [ $# = 2 ] || usage; start "$2" ;;
  stop)
    [ $# = 2 ] || usage
    case $2 in primary | standby | coordinator | worker-[12]) stop INT "$2" ;; *) stop TERM "$2" ;; esac
    ;;
  kill) [ $# = 2 ] || usage; stop KILL "$2" ;;
  restart) [ $# = 2 ] || usage; restart_gateway "${2#gateway-}" ;;
  roll) for n in 1 2 3; do restart_gateway $n; done ;;
  promote) as_postgres "$PG/pg_ctl" promote -w -D "$DIR/postgres/standby" >/dev/null ;;
  *) usage ;;
esac
