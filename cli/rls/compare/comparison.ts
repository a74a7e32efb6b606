import { counted, visible } from '../../output.js';
import type { ComparedCaller } from './callers.js';
import type { ComparedColumns } from './compared-columns.js';
import type { VisibleRows } from './rows.js';

/** The rows of one caller in one entity, compared. */
export interface Comparison {
  readonly caller: string;
  readonly role: string;
  readonly entity: string;
  /** `narrower`: the gateway shows some of the rows. `wider`: it shows rows that row security hides. */
  readonly result: 'equal' | 'narrower' | 'wider' | 'differs' | 'unknown';
  /** Number of rows; null if they are not known. */
  readonly database: number | null;
  readonly gateway: number | null;
  /** The key of a row that the gateway alone shows, as JSON; otherwise null, also if the entity has no key. */
  readonly more: string | null;
  /** The same of a row that the database alone shows. */
  readonly less: string | null;
  /** Why the result is unknown; otherwise null. */
  readonly reason: string | null;
}

export function compared(
  { name: caller, role }: ComparedCaller,
  { entity, isKey }: ComparedColumns,
  under: VisibleRows,
  through: VisibleRows,
): Comparison {
  const of = { caller, role, entity };
  if (under.kind === 'unknown' || through.kind === 'unknown') {
    const fails = under.kind === 'unknown' ? under.reason : null;
    const refuses = through.kind === 'unknown' ? through.reason : null;
    // Where the database fails, nobody sees a row there; the gateway must not show one.
    if (fails !== null && through.kind === 'rows' && through.keys.size > 0)
      return {
        ...of,
        result: 'wider',
        database: null,
        gateway: through.keys.size,
        more: isKey ? first(through.keys) : null,
        less: null,
        reason: fails,
      };
    return unknown(of, fails ?? refuses ?? '');
  }
  const more = [...through.keys].find((key) => !under.keys.has(key)) ?? null;
  const less = [...under.keys].find((key) => !through.keys.has(key)) ?? null;
  const result = more === null ? (less === null ? 'equal' : 'narrower') : less === null ? 'wider' : 'differs';
  const [database, gateway] = [under.keys.size, through.keys.size];
  const keys = isKey ? { more, less } : { more: null, less: null };
  return { ...of, result, database, gateway, ...keys, reason: null };
}

/** The result for an entity without a column by which its rows could be compared. */
export function notCompared({ name: caller, role }: ComparedCaller, entity: string): Comparison {
  return unknown({ caller, role, entity }, 'no column without a mask could be compared');
}

function unknown(of: Pick<Comparison, 'caller' | 'role' | 'entity'>, reason: string): Comparison {
  return { ...of, result: 'unknown', database: null, gateway: null, more: null, less: null, reason };
}

function first(keys: ReadonlySet<string>): string | null {
  const [key = null] = keys;
  return key;
}

/** Lines for a person: what is not equal, then the numbers. */
export function comparisonText(found: readonly Comparison[], callers: number): readonly string[] {
  const count = (result: Comparison['result']): number => found.filter((one) => one.result === result).length;
  const rows = found.reduce((sum, { database }) => sum + (database ?? 0), 0);
  const lines = found.filter(({ result }) => result !== 'equal').map(lineOf);
  return [
    ...lines,
    `${counted(callers, 'caller', 'callers')}, ${counted(found.length, 'comparison', 'comparisons')}, ${counted(rows, 'row', 'rows')}: ` +
      `${count('equal')} equal, ${count('narrower')} narrower, ${count('wider')} wider, ${count('differs')} different, ${count('unknown')} unknown`,
  ];
}

function lineOf({ result, caller, entity, database, gateway, more, less, reason }: Comparison): string {
  const numbers =
    database === null || gateway === null
      ? ''
      : `: ${database} in the database, ${gateway} through the gateway`;
  const rows = [
    more === null ? [] : [`the row ${more} through the gateway alone`],
    less === null ? [] : [`the row ${less} in the database alone`],
  ].flat();
  const row = rows.length === 0 ? '' : `, such as ${rows.join(' and ')}`;
  return visible(`${result}: ${entity} for ${caller}${numbers}${row}${reason === null ? '' : `: ${reason}`}`);
}
