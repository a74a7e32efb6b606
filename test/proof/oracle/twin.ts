import type { Column } from 'osl-compiler';
import type { Engine } from '../golden/engine.js';
import { copiesSql, rightsSql } from './copies.js';
import type { Dice } from './dice.js';
import { effectiveMask, randomValue, type Table, type World } from './world.js';

type Row = Table['rows'][number];

/**
 * A world that differs from `world` only in what the caller may not see: hidden rows are gone, others or more;
 * masked cells hold something else that is masked alike; and nothing is where it was.
 */
export async function twinOf(world: World, engine: Engine, dice: Dice): Promise<World> {
  const tables: Table[] = [];
  for (const table of world.tables) tables.push(await twinTable(table, world, engine, dice));
  return { ...world, tables };
}

async function twinTable(table: Table, world: World, engine: Engine, dice: Dice): Promise<Table> {
  const { rows: rights } = await engine.ask(rightsSql(table, world.subjects, 'whole'), []);
  const byId = new Map(rights.map(([id, ...flags]) => [id, flags.map((f) => f === 't')]));
  const fixed = new Set(table.grants.flatMap((g) => (g.filter === null ? [] : namesIn(g.filter.text))));
  const hidden: Row[] = [];
  const shown: Row[] = [];
  for (const row of table.rows) {
    const [visible, ...clear] = byId.get(row[0] ?? null) ?? [];
    if (visible === true) shown.push(row.map((v, i) => otherCell(v, i, clear, table, fixed, dice)));
    else hidden.push(row);
  }
  return { ...table, rows: shuffled([...shown, ...otherHidden(hidden, table, fixed, dice)], dice) };
}

function namesIn(text: string): readonly string[] {
  return text.match(/[a-z]\w*/g) ?? [];
}

/** Another value for a cell that is not clear, where its mask does not tell the two apart. */
function otherCell(
  value: string | null,
  index: number,
  clear: readonly boolean[],
  table: Table,
  fixed: ReadonlySet<string>,
  dice: Dice,
): string | null {
  const column = table.columns[index];
  if (column === undefined || clear[index] === true || fixed.has(column.name) || column.name === 'id')
    return value;
  const covered = clear[index + table.columns.length] === true;
  const kind = covered ? effectiveMask(column, table) : 'redact';
  if (kind === 'hash') return value;
  if (kind === 'partial')
    return value === null || value === '' ? value : `${[...value][0]}${dice.of(['', 'q', 'ß'])}`;
  if (kind === 'year')
    return value === null ? null : value.replace(/-\d\d-\d\d/, dice.of(['-03-04', '-12-31']));
  return column.type === 'int4' && dice.chance(0.5) ? '57' : randomValue(column, dice);
}

function otherHidden(
  hidden: readonly Row[],
  table: Table,
  fixed: ReadonlySet<string>,
  dice: Dice,
): readonly Row[] {
  const other = (row: Row, id: string | null): Row =>
    table.columns.map((c, i) =>
      c.name === 'id' ? id : fixed.has(c.name) ? (row[i] ?? null) : poison(c, dice),
    );
  const kept = hidden.filter(() => dice.chance(0.6)).map((row) => other(row, row[0] ?? null));
  const [model] = hidden;
  if (model === undefined || fixed.has('id')) return kept;
  return [...kept, ...dice.times(0, 30, (i) => other(model, String(1000 + i)))];
}

/** Values that a predicate might stumble over. */
function poison(column: Column, dice: Dice): string | null {
  return column.type === 'int4' && dice.chance(0.6) ? '57' : randomValue(column, dice);
}

function shuffled<T>(items: readonly T[], dice: Dice): readonly T[] {
  const left = [...items];
  return items.flatMap(() => left.splice(dice.upTo(left.length - 1), 1));
}

/** Fails where the caller could tell the twins apart by the tables alone: then the test is wrong, not the compiler. */
export async function assertTwins(world: World, twin: World, engine: Engine): Promise<void> {
  await engine.setUp(`begin; ${copiesSql(twin, 'twin', 'twincopies')} commit`);
  for (const { name } of world.tables) {
    const both = [`select * from copies.${name}`, `select * from twincopies.${name}`];
    const [one, two] = [await engine.ask(both[0] ?? '', []), await engine.ask(both[1] ?? '', [])];
    const lines = (rows: typeof one.rows): string =>
      rows
        .map((r) => JSON.stringify(r))
        .sort()
        .join('\n');
    if (lines(one.rows) !== lines(two.rows))
      throw new Error(`twins of ${name} differ: ${lines(one.rows)} / ${lines(two.rows)}`);
  }
}
