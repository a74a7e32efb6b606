import { quoteIdentifier } from 'osl-compiler/sql-text';

/** Bootstrap superuser of a catalog engine. It owns the system objects and never runs a caller's statement. */
export const OWNER_ROLE = 'osl';
/** Role that owns the caller's tables but cannot write to them; every caller is a member. */
export const MODEL_ROLE = 'osl_model';
/** Role that owns the replaced functions and can read only what they read. */
export const SETTINGS_ROLE = 'osl_settings';
/** Name of the caller's role until the first caller arrives. */
export const FIRST_CALLER = 'osl_caller';

const RESERVED_NAMES: ReadonlySet<string> = new Set([
  OWNER_ROLE,
  MODEL_ROLE,
  SETTINGS_ROLE,
  FIRST_CALLER,
  'public',
  'none',
]);
const MAX_BYTES = 63;

/** Role name displayed for a subject: the subject itself unless that name is reserved, truncated as in Postgres. */
export function roleNameOf(subject: string): string {
  const name = RESERVED_NAMES.has(subject) || subject.startsWith('pg_') ? `subject ${subject}` : subject;
  let bytes = 0;
  let end = 0;
  for (const character of name) {
    bytes += Buffer.byteLength(character);
    if (bytes > MAX_BYTES) break;
    end += character.length;
  }
  return name.slice(0, end);
}

export function qualifiedName(name: string): string {
  return `entities.${quoteIdentifier(name)}`;
}

/**
 * Quotes `text` as an escape string literal, whose meaning does not depend on settings. Manifests and tokens contain
 * no NUL.
 */
export function escapeLiteral(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/**
 * Server version reported by the catalog and ParameterStatus. The engine is Postgres 18, but a client that sees a newer
 * version uses features that the catalog, which is presented as in version 14, does not have.
 */
export const CATALOG_VERSION = '14.18';

/** SQLSTATE of notices that carry a session signal; Postgres itself does not use it. */
export const SESSION_SIGNALLED = 'OSL02';

/** A call of `pg_cancel_backend` or `pg_terminate_backend`. */
export interface SessionSignal {
  readonly pid: number;
  readonly what: 'cancel' | 'terminate';
}

/** Row of `pg_stat_activity` for one of the caller's sessions. Times are in ms since the epoch. */
export interface SessionActivity {
  readonly pid: number;
  readonly application_name: string;
  readonly backend_start: number;
  readonly xact_start: number | null;
  readonly query_start: number | null;
  readonly state_change: number;
  readonly state: string;
  readonly query: string;
}

/** Row of `pg_cursors`. */
export interface CatalogCursor {
  readonly name: string;
  readonly text: string;
  readonly hold: boolean;
  readonly binary: boolean;
  readonly scroll: boolean;
  readonly created: number;
}

/** Row of `pg_prepared_statements`. */
export interface CatalogStatement {
  readonly name: string;
  readonly text: string;
  readonly prepared: number;
  readonly parameters: readonly number[];
  /** OIDs of the result columns; null if the statement returns no rows. */
  readonly results: readonly number[] | null;
  readonly fromSql: boolean;
}

interface SignalNotice {
  readonly sqlstate: string;
  readonly message: string;
}

export function sessionSignal({ sqlstate, message }: SignalNotice): SessionSignal | null {
  if (sqlstate !== SESSION_SIGNALLED) return null;
  const [pid, kind] = JSON.parse(message) as [number, SessionSignal['what']]; // written by our own function
  return { pid, what: kind };
}

/** True if the text may read or signal sessions, cursors or prepared statements. */
export function mentionsSessions(text: string): boolean {
  return SESSION_NAMES.test(text);
}

const SESSION_NAMES =
  /pg_stat_activity|pg_locks|pg_cancel_backend|pg_terminate_backend|pg_cursors|pg_prepared_statements|u&"/i;

/** SQLSTATE of notices that carry a `set_config` call; Postgres itself does not use it. */
export const SETTING_CHANGED = 'OSL01';

/** A `set_config` call; a null value resets the setting. */
export interface SettingChange {
  readonly name: string;
  readonly value: string | null;
  readonly local: boolean;
}

interface SettingNotice {
  readonly sqlstate: string;
  readonly message: string;
}

export function settingChange({ sqlstate, message }: SettingNotice): SettingChange | null {
  if (sqlstate !== SETTING_CHANGED) return null;
  const [name, value, local] = JSON.parse(message) as [string, string | null, boolean]; // written by our own function
  return { name, value, local };
}

export interface CatalogContents {
  readonly enums: readonly EnumModel[];
  readonly tables: readonly TableModel[];
  readonly foreignKeys: readonly CatalogForeignKey[];
  readonly metrics: readonly MetricsModel[];
  readonly facets: readonly FacetModel[];
}

export interface EnumModel {
  readonly name: string;
  readonly labels: readonly string[];
}

export interface TableModel {
  readonly name: string;
  readonly comment: string | null;
  readonly columns: readonly ColumnModel[];
  /** Primary key columns; empty unless the caller sees all of them unmasked. */
  readonly primaryKey: readonly string[];
}

export interface ColumnModel {
  readonly name: string;
  readonly type: string;
  readonly notNull: boolean;
  readonly comment: string | null;
}

export interface CatalogForeignKey {
  readonly table: string;
  readonly columns: readonly string[];
  readonly target: string;
  /** All columns of the target's primary key, in the order of the referencing `columns`. */
  readonly targetColumns: readonly string[];
  readonly comment: string | null;
}

export interface MetricsModel {
  readonly entity: string;
  readonly metrics: readonly MetricModel[];
}

export interface MetricModel {
  readonly name: string;
  readonly type: string;
  readonly description: string | null;
}

export interface FacetModel {
  readonly name: string;
  readonly description: string | null;
  readonly columns: readonly (readonly [name: string, type: string])[];
}

type ContentsKind = keyof CatalogContents;
type ContentsItem = {
  readonly [K in ContentsKind]: readonly [kind: K, item: CatalogContents[K][number]];
}[ContentsKind];

/** Approximate size of a part in UTF-16 code units: small enough to be written, sent and read in a millisecond. */
const PART_LENGTH = 65_536;

/** Serializes contents in parts, so that no thread handles tens of thousands of columns at once. */
export class ContentsWriter {
  readonly #parts: Uint8Array[] = [];
  #items: string[] = [];
  #length = 0;

  add(...item: ContentsItem): void {
    const text = JSON.stringify(item);
    this.#items.push(text);
    this.#length += text.length;
    if (this.#length >= PART_LENGTH) this.#endPart();
  }

  parts(): readonly Uint8Array[] {
    if (this.#items.length > 0) this.#endPart();
    return this.#parts;
  }

  #endPart(): void {
    this.#parts.push(new TextEncoder().encode(`[${this.#items.join(',')}]`));
    this.#items = [];
    this.#length = 0;
  }
}

export function parseContents(parts: Iterable<Uint8Array>): CatalogContents {
  const contents: { readonly [K in ContentsKind]: CatalogContents[K][number][] } = {
    enums: [],
    tables: [],
    foreignKeys: [],
    metrics: [],
    facets: [],
  };
  const decoder = new TextDecoder();
  for (const part of parts) {
    // `ContentsWriter` wrote each kind with items of the matching type.
    for (const [kind, item] of JSON.parse(decoder.decode(part)) as ContentsItem[])
      (contents[kind] as unknown[]).push(item);
  }
  return contents;
}
