import { identifier } from 'osl-compiler/sql-text';
import type { Thing } from '../graph/model.js';

/** Columns that a question written for somebody names: what fits a screen. */
const MOST_COLUMNS = 8;

/** A question about a thing, written out; null where the schema has none that this caller can send. */
export function questionFor({ kind, name, columns, examples }: Thing): string | null {
  const rows = columns.filter((c) => c.sight !== 'aggregates');
  if (kind !== 'entity' || rows.length === 0) return examples[0] ?? null;
  const list = rows.slice(0, MOST_COLUMNS).map((c) => identifier(c.name));
  return `select ${list.join(', ')}\nfrom osl.entities.${identifier(name)}\nlimit 100`;
}
