import { type AdoptionCandidate, isExposable } from '../../src/model/discovery/index.js';
import { isModelName, tableName } from '../../src/model/manifest/index.js';

/** A pattern for choosing tables: `*`, `sales.*`, `orders`, `-audit_log`, `public.tbl_customer=customer`. */
export interface TablePattern {
  readonly pattern: string;
  readonly name: string | null;
  readonly out: boolean;
}

export function parseTablePatterns(text: string): readonly TablePattern[] | null {
  const words = text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const wanted = words.map((word): TablePattern | null => {
    const [pattern = '', name = null, ...more] = word.replace(/^-/, '').split('=');
    const out = word.startsWith('-');
    if (pattern === '' || more.length > 0 || (name !== null && !isModelName(name))) return null;
    return { pattern: pattern.trim(), name: name?.trim() ?? null, out };
  });
  return wanted.includes(null) ? null : wanted.filter((w) => w !== null);
}

export interface ExcludedTable {
  /** Name of the table: `schema.table`. */
  readonly table: string;
  readonly reason: string;
}

export interface TableSelection {
  readonly candidates: readonly AdoptionCandidate[];
  readonly leftOut: readonly ExcludedTable[];
  readonly unmatched: readonly string[];
}

export function chooseTables(
  found: readonly AdoptionCandidate[],
  wanted: readonly TablePattern[],
): TableSelection {
  const asked = wanted.filter((w) => !w.out);
  const named = new Set<TablePattern>();
  const leftOut: ExcludedTable[] = [];
  const candidates = found.flatMap((candidate): readonly AdoptionCandidate[] => {
    const hits = wanted.filter((w) => matches(w.pattern, candidate));
    for (const hit of hits) named.add(hit);
    if (hits.some((w) => w.out) || (asked.length > 0 && !hits.some((w) => !w.out))) return [];
    const reason = obstacle(candidate);
    if (reason !== null) {
      leftOut.push({ table: tableOf(candidate), reason });
      return [];
    }
    const name = hits.find((w) => w.name !== null)?.name ?? candidate.name;
    return [{ ...candidate, name, columns: candidate.columns.filter((c) => c.readable) }];
  });
  return { candidates, leftOut, unmatched: wanted.filter((w) => !named.has(w)).map((w) => w.pattern) };
}

export function tableOf(candidate: Pick<AdoptionCandidate, 'schema' | 'table'>): string {
  return tableName(candidate);
}

/** ID of a column: `schema.table.column`. */
export function columnId(table: Pick<AdoptionCandidate, 'schema' | 'table'>, column: string): string {
  return `${tableOf(table)}.${column}`;
}

function matches(pattern: string, { schema, table }: AdoptionCandidate): boolean {
  const whole = pattern.includes('.') ? `${schema}.${table}` : table;
  const parts = pattern.split('*').map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 'su').test(whole);
}

function obstacle({ columns }: AdoptionCandidate): string | null {
  if (columns.length === 0) return 'it has no columns';
  const readable = columns.filter((c) => c.readable);
  if (readable.length === 0) return 'the role of the connection may not read it';
  if (!readable.some(isExposable)) return 'no column has a type of the model';
  return null;
}
