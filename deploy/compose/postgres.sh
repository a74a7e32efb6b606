#!/bin/sh
# Run once by the Postgres image when its data directory is new: creates roles, databases, and two tables to query.
set -eu
secrets="${OSL_SECRETS:-/run/osl}"
role() { printf "CREATE ROLE %s LOGIN PASSWORD '%s';\n" "$1" "$(cat "$secrets/$1.password")"; }
{
  for name in osl_owner osl_gateway osl_author osl_reader; do role "$name"; done
  echo 'CREATE DATABASE osl OWNER osl_owner;'
  echo 'CREATE DATABASE shop;'
} | psql -v ON_ERROR_STOP=1 -q --username "$POSTGRES_USER" --dbname postgres
psql -v ON_ERROR_STOP=1 -q --username "$POSTGRES_USER" --dbname shop <<'SQL'
-- For facets with embeddings: docs/content.md. Where the server has it.
DO $$ BEGIN IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN CREATE EXTENSION vector; END IF; END $$;
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, email text, region text NOT NULL);
CREATE TABLE purchase (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customer, amount numeric(10, 2) NOT NULL,
  placed_on date NOT NULL);
INSERT INTO customer VALUES (1, 'Ann', 'ann@example.org', 'eu'), (2, 'Bo', 'bo@example.org', 'us');
INSERT INTO purchase VALUES (1, 1, 12.50, '2026-10-02'), (2, 2, 8.00, '2026-10-09'), (3, 1, 30.00, '2026-11-03');
GRANT SELECT ON customer, purchase TO osl_reader;
SQL
