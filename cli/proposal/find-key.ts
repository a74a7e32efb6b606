import { sql, sqlJoin, sqlName, sqlNumber, sqlTable } from '../../src/base/sql.js';
import { type SystemEngine, UpstreamFailure } from '../../src/engine/index.js';
import {
  type AdoptionCandidate,
  type CandidateColumn,
  isExposable,
} from '../../src/model/discovery/index.js';

/** Last words in the names of measures, which are not keys even if their values are unique. */
const MEASURES = new Set(
  `count counts cnt counter amount amt total totals subtotal sum qty quantity price cost costs fee fees fare charge
  charges revenue turnover sales value balance discount tax vat salary wage income profit margin budget refund credit
  debit deposit payment paid spend spent rent size length width height weight volume bytes distance duration seconds
  minutes hours age score rating rate ratio share percent percentage pct average avg mean median min max stock points
  views clicks visits likes attempts retries`.split(/\s+/),
);
/** First words in the names of measures: `num_orders`, `total_weight`. */
const LEADING = new Set('count num total sum avg average mean min max'.split(' '));

const MONEY = new Set(
  `amount amt total subtotal price cost costs fee fees fare charge charges revenue turnover sales balance discount tax
  vat salary wage income profit margin budget refund credit debit deposit payment paid spend spent rent gross net eur
  usd gbp chf`.split(/\s+/),
);
/** Amounts per unit, whose sum is meaningless. */
const EACH = new Set(['price', 'fare', 'rent', 'salary', 'wage']);

function isMeasure(column: string): boolean {
  const words = wordsOf(column);
  const [first = ''] = words;
  return MEASURES.has(words.at(-1) ?? '') || (words.length > 1 && LEADING.has(first));
}

/** Metrics to suggest for a numeric column with this name; null if it is not an amount of money. */
export function moneyOf(column: string): 'sum and average' | 'average' | null {
  const words = wordsOf(column);
  if (words.some((word) => /^(count|id|no|number|code|type|currency|rate|pct|percent)$/.test(word)))
    return null;
  if (words.some((word) => EACH.has(word))) return 'average';
  return words.some((word) => MONEY.has(word)) ? 'sum and average' : null;
}

/** Splits a name into lower-case words: `homePhone`, `HOME_PHONE` and `home-phone` become `home`, `phone`. */
export function wordsOf(name: string): readonly string[] {
  return name
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu}+)(\p{Lu}\p{Ll})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\d]+/u)
    .filter((word) => word !== '');
}

export type FoundKey =
  | { readonly kind: 'declared' | 'counted'; readonly columns: readonly string[] }
  | { readonly kind: 'none'; readonly reason: string };

const TABLE_MS = 5_000;
const MOST_COLUMNS = 8;
const MOST_PARTS = 5;

/** Returns a declared key whose columns can all be exposed; null if there is none. */
export function declaredKey(candidate: AdoptionCandidate): readonly string[] | null {
  const usable = new Set(candidate.columns.filter(isExposable).map((c) => c.name));
  const required = new Set(candidate.columns.filter((c) => !c.nullable).map((c) => c.name));
  const others = candidate.unique_keys.filter((key) => key.every((c) => required.has(c)));
  const keys = [candidate.key, ...others].filter((key) => key.length > 0);
  return keys.find((key) => key.every((c) => usable.has(c))) ?? null;
}

/**
 * Finds a key for a table that declares none, by counting distinct values in its current rows: one column, or a pair.
 * Columns with NULLs are not used.
 */
export async function countKey(system: SystemEngine, candidate: AdoptionCandidate): Promise<FoundKey> {
  const likely = likelyColumns(candidate).slice(0, MOST_COLUMNS);
  if (likely.length === 0) return { kind: 'none', reason: 'it has no key, and no column that could be one' };
  // Key columns usually come first in a table.
  const order = candidate.columns.map((c) => c.name);
  const parts = [...likely].sort((a, b) => order.indexOf(a) - order.indexOf(b)).slice(0, MOST_PARTS);
  const pairs = parts.flatMap((a, i) => parts.slice(i + 1).map((b) => [a, b]));
  try {
    for (const round of [likely.map((c) => [c]), pairs]) {
      if (round.length === 0) continue;
      const { rows, distinct } = await count(system, candidate, round);
      if (rows === 0)
        return { kind: 'none', reason: 'it has no key, and no rows by which one could be found' };
      const at = distinct.indexOf(rows);
      if (at >= 0) return { kind: 'counted', columns: round[at] ?? [] };
    }
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    const slow = error.sqlstate === '57014';
    return {
      kind: 'none',
      reason: slow ? `it has no key, and counting took over ${TABLE_MS / 1000} s` : error.message,
    };
  }
  return {
    kind: 'none',
    reason: 'it has no key, and no column or pair of columns has a value of its own in every row',
  };
}

async function count(
  system: SystemEngine,
  { schema, table }: AdoptionCandidate,
  sets: readonly (readonly string[])[],
): Promise<{ readonly rows: number; readonly distinct: readonly number[] }> {
  const columns = sets.map((set, i) => {
    const names = set.map(sqlName);
    const value = names.length === 1 ? sqlJoin(names) : sql`(${sqlJoin(names)})`;
    const filled = sqlJoin(
      names.map((n) => sql`${n} IS NOT NULL`),
      sql` AND `,
    );
    return sql`count(DISTINCT ${value}) FILTER (WHERE ${filled})::float8 AS ${sqlName(`k${i}`)}`;
  });
  const from = sqlTable({ schema, table });
  return system.transaction(async (tx) => {
    await tx.script(
      sql`SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = ${sqlNumber(TABLE_MS)}; SET LOCAL lock_timeout = '1s'`,
    );
    const [row] = await tx.query(sql`SELECT count(*)::float8 AS rows, ${sqlJoin(columns)} FROM ${from}`);
    return { rows: Number(row?.['rows']), distinct: sets.map((_, i) => Number(row?.[`k${i}`])) };
  });
}

const KEY_TYPES = new Set([
  'int2',
  'int4',
  'int8',
  'numeric',
  'text',
  'bpchar',
  'uuid',
  'date',
  'timestamp',
  'timestamptz',
]);
const KEY_WORDS = /^(id|uuid|guid|key|pk|code|number|nr|no|num|isbn|sku|slug)$/;

/** Columns that could be keys judging by type and name, most likely first. */
function likelyColumns(candidate: AdoptionCandidate): readonly string[] {
  const own = wordsOf(candidate.table).map((word) => word.replace(/s$/, ''));
  const rank = ({ name, type }: CandidateColumn): number => {
    const words = wordsOf(name);
    const last = words.at(-1) ?? '';
    if (words.length === 1 && KEY_WORDS.test(last)) return 0;
    if (KEY_WORDS.test(last) && words.slice(0, -1).every((w) => own.includes(w.replace(/s$/, '')))) return 1;
    if (KEY_WORDS.test(last)) return 2;
    return type === 'uuid' || type === 'int8' || type === 'int4' ? 3 : 4;
  };
  return candidate.columns
    .filter((c) => isExposable(c) && c.stored === null && KEY_TYPES.has(c.type ?? '') && !isMeasure(c.name))
    .map((c, i) => ({ name: c.name, rank: rank(c), i }))
    .sort((a, b) => a.rank - b.rank || a.i - b.i)
    .map((c) => c.name);
}
