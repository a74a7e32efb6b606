import type pg from 'pg';

/**
 * One catalog statement of a tool. `<<class person>>` stands for an OID, which differs from server to server: of a
 * class, type or constraint of the caller's schema, of the schema itself or of the caller's role.
 */
export interface CatalogStatement {
  readonly sql: string;
  /** Of `$1 …`, as text. */
  readonly values?: readonly (string | null)[];
}

const OIDS = `
  select 'class ' || relname, oid::text from pg_catalog.pg_class where relnamespace = 'entities'::regnamespace
  union all select 'type ' || typname, oid::text from pg_catalog.pg_type where typnamespace = 'entities'::regnamespace
  union all select 'constraint ' || conname, oid::text from pg_catalog.pg_constraint where connamespace = 'entities'::regnamespace
  union all select 'schema entities', 'entities'::regnamespace::oid::text
  union all select 'role caller', oid::text from pg_catalog.pg_roles where rolname = current_user`;

/** OIDs by what they are of, as one server gave them. */
export async function oidsOf(client: pg.Client): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<[string, string]>({ text: OIDS, rowMode: 'array' });
  return new Map(rows);
}

export function withOids(text: string, oids: ReadonlyMap<string, string>): string {
  return text.replace(/<<(\w+ [^>]+)>>/g, (_, what: string) => {
    const oid = oids.get(what);
    if (oid === undefined) throw new Error(`nothing is ${what}`);
    return oid;
  });
}

/** `text` with names in the place of `oids`. */
export function withoutOids(text: string, oids: ReadonlyMap<string, string>): string {
  const names = new Map([...oids].map(([what, oid]) => [oid, what]));
  return text.replace(/(?<![\w.])\d{5,}(?![\w.])/g, (number) => {
    const what = names.get(number);
    return what === undefined ? number : `<<${what}>>`;
  });
}
