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

const PLAIN = /^[a-z_][a-z0-9_]*$/;

/** Quoted where SQL would read it otherwise. Words of the grammar are quoted too: that is never wrong. */
export function identifier(name: string): string {
  return PLAIN.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Source: PostgreSQL 17, appendix C, what is reserved or can be no column's name. */
const RESERVED = new Set(
  'all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral leading limit localtime localtimestamp not null offset on only or order placing primary references returning select session_user some symmetric table then to trailing true union unique user using variadic when where window with'.split(
    ' ',
  ),
);
