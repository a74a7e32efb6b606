import { quoteIdentifier } from 'osl-compiler/sql-text';

/** Bootstrap superuser of a catalog engine: owns the system's objects and never runs a caller's statement. */
export const OWNER_ROLE = 'osl';
/** Owns the caller's tables without rights to write them; every caller is a member. */
export const MODEL_ROLE = 'osl_model';
/** Owns the replaced functions; may read only what they read. */
export const SETTINGS_ROLE = 'osl_settings';
/** Name of the caller's role before the first caller. */
export const FIRST_CALLER = 'osl_caller';

const TAKEN: ReadonlySet<string> = new Set([
  OWNER_ROLE,
  MODEL_ROLE,
  SETTINGS_ROLE,
  FIRST_CALLER,
  'public',
  'none',
]);
const MAX_BYTES = 63;

/** Role name shown for a subject: its own name unless reserved, truncated as in Postgres. */
export function roleNameOf(subject: string): string {
  const name = TAKEN.has(subject) || subject.startsWith('pg_') ? `subject ${subject}` : subject;
  let bytes = 0;
  let end = 0;
  for (const character of name) {
    bytes += Buffer.byteLength(character);
    if (bytes > MAX_BYTES) break;
    end += character.length;
  }
  return name.slice(0, end);
}

export function inEntities(name: string): string {
  return `entities.${quoteIdentifier(name)}`;
}

/** Escape string literal, whose meaning does not depend on settings. Manifests and tokens contain no NUL. */
export function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/**
 * Version that the catalog and ParameterStatus report. The engine is Postgres 18, but clients that see 18 query
 * columns which psql 15 and 17 then do not find.
 */
export const CATALOG_VERSION = '14.18';
