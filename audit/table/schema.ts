/**
 * Tables of the log. The owner creates them; the gateway may only insert and select. `record` has a partition for each
 * day.
 *
 * INVARIANT: all search columns are derived from the record by the database, so they cannot contradict it.
 */
export const SCHEMA = `
CREATE SCHEMA osl_audit;

CREATE TABLE osl_audit.writer (
  writer text PRIMARY KEY CHECK (writer ~ '^[A-Za-z0-9_.-]{1,64}$'),
  vkey text NOT NULL,
  since timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE osl_audit.segment (
  writer text NOT NULL REFERENCES osl_audit.writer,
  segment bigint NOT NULL CHECK (segment > 0),
  epoch bigint NOT NULL CHECK (epoch > 0),
  first_seq bigint NOT NULL CHECK (first_seq >= 0),
  chain bytea NOT NULL CHECK (length(chain) = 32),
  frontier bytea NOT NULL,
  unanswered jsonb NOT NULL,
  day date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
  PRIMARY KEY (writer, segment)
);

CREATE FUNCTION osl_audit.texts(list jsonb) RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog
  AS 'SELECT coalesce(array_agg(value), array[]::text[]) FROM jsonb_array_elements_text(list)';

CREATE TABLE osl_audit.record (
  day date NOT NULL,
  writer text NOT NULL,
  segment bigint NOT NULL,
  seq bigint NOT NULL CHECK (seq >= 0),
  first_of_group bigint NOT NULL CHECK (first_of_group <= seq),
  previous bytea NOT NULL CHECK (length(previous) = 32),
  chain bytea NOT NULL CHECK (length(chain) = 32),
  record text NOT NULL COLLATE "C",
  ts text COLLATE "C" GENERATED ALWAYS AS (record::jsonb ->> 'ts') STORED,
  request_id text COLLATE "C" GENERATED ALWAYS AS (record::jsonb ->> 'request_id') STORED,
  parties text[] COLLATE "C" GENERATED ALWAYS AS
    (osl_audit.texts(record::jsonb -> 'chain') || coalesce(record::jsonb ->> 'subject', '')) STORED,
  objects text[] COLLATE "C" GENERATED ALWAYS AS (osl_audit.texts(record::jsonb -> 'objects')) STORED,
  objects_omitted boolean GENERATED ALWAYS AS (record::jsonb -> 'objects_omitted' <> '0'::jsonb) STORED,
  PRIMARY KEY (writer, seq, day),
  UNIQUE (writer, previous, day),
  FOREIGN KEY (writer, segment) REFERENCES osl_audit.segment
) PARTITION BY RANGE (day);
CREATE INDEX record_ts ON osl_audit.record (ts, writer, seq);
CREATE INDEX record_request ON osl_audit.record (request_id);
CREATE INDEX record_parties ON osl_audit.record USING gin (parties);
CREATE INDEX record_objects ON osl_audit.record USING gin (objects);
CREATE INDEX record_omitted ON osl_audit.record (ts) WHERE objects_omitted;

CREATE TABLE osl_audit.checkpoint (
  writer text NOT NULL REFERENCES osl_audit.writer,
  size bigint NOT NULL CHECK (size >= 0),
  kind text NOT NULL CHECK (kind IN ('lasting', 'newest', 'retained')),
  segment bigint CHECK ((kind = 'retained') = (segment IS NOT NULL)),
  note text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);
CREATE INDEX checkpoint_newest ON osl_audit.checkpoint (writer, kind, size DESC);

CREATE TABLE osl_audit.reading (
  id uuid PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  reading text NOT NULL CHECK (length(reading) <= 4096)
);
CREATE TABLE osl_audit.reading_recorded (id uuid PRIMARY KEY REFERENCES osl_audit.reading ON DELETE CASCADE);

-- Partitions for today and the days to come: whoever may insert may ask for them.
CREATE FUNCTION osl_audit.make_partitions(days integer DEFAULT 7) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  first date := (now() AT TIME ZONE 'UTC')::date;
  part date;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('osl_audit partitions', 0));
  FOR n IN 0 .. least(days, 31) LOOP
    part := first + n;
    IF to_regclass(format('osl_audit.%I', 'record_' || to_char(part, 'YYYYMMDD'))) IS NULL THEN
      EXECUTE format('CREATE TABLE osl_audit.%I PARTITION OF osl_audit.record FOR VALUES FROM (%L) TO (%L)',
        'record_' || to_char(part, 'YYYYMMDD'), part, part + 1);
    END IF;
  END LOOP;
END $function$;

-- Drops the partitions in which no writer keeps a record, by what each has signed: who lost nothing signed is refused.
CREATE FUNCTION osl_audit.prune() RETURNS SETOF text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  part record;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('osl_audit partitions', 0));
  FOR part IN
    SELECT c.relname AS name, to_date(right(c.relname, 8), 'YYYYMMDD') AS day
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'osl_audit.record'::regclass ORDER BY 1
  LOOP
    CONTINUE WHEN part.day >= (now() AT TIME ZONE 'UTC')::date;
    CONTINUE WHEN EXISTS (
      SELECT FROM osl_audit.segment s
       WHERE s.day = part.day AND s.segment >= coalesce(
         (SELECT max(c.segment) FROM osl_audit.checkpoint c WHERE c.writer = s.writer AND c.kind = 'retained'), 0));
    EXECUTE format('DROP TABLE osl_audit.%I', part.name);
    RETURN NEXT part.name;
  END LOOP;
  DELETE FROM osl_audit.checkpoint c
   WHERE c.kind = 'newest' AND c.at < now() - interval '1 day'
     AND EXISTS (SELECT FROM osl_audit.checkpoint n WHERE n.writer = c.writer AND n.number > c.number AND n.size >= c.size);
  DELETE FROM osl_audit.reading r
   WHERE r.at < now() - interval '7 days' AND EXISTS (SELECT FROM osl_audit.reading_recorded d WHERE d.id = r.id);
END $function$;
REVOKE ALL ON FUNCTION osl_audit.make_partitions(integer), osl_audit.prune() FROM PUBLIC;
SELECT osl_audit.make_partitions();
`;

/** Returns statements that grant the gateway's role INSERT, SELECT and the right to create partitions. */
export function gatewayGrants(role: string): string {
  return `
GRANT USAGE ON SCHEMA osl_audit TO ${role};
GRANT SELECT, INSERT ON osl_audit.writer, osl_audit.segment, osl_audit.record, osl_audit.checkpoint,
  osl_audit.reading, osl_audit.reading_recorded TO ${role};
GRANT EXECUTE ON FUNCTION osl_audit.make_partitions(integer) TO ${role};
`;
}

/** Returns statements that grant readers SELECT, and INSERT for announcing their reads. */
export function readerGrants(role: string): string {
  return `
GRANT USAGE ON SCHEMA osl_audit TO ${role};
GRANT SELECT ON osl_audit.writer, osl_audit.segment, osl_audit.record, osl_audit.checkpoint, osl_audit.reading TO ${role};
GRANT INSERT ON osl_audit.reading TO ${role};
`;
}

/** Returns statements that let the maintenance role create partitions and prune expired ones. */
export function maintenanceGrants(role: string): string {
  return `
GRANT USAGE ON SCHEMA osl_audit TO ${role};
GRANT EXECUTE ON FUNCTION osl_audit.make_partitions(integer), osl_audit.prune() TO ${role};
`;
}
