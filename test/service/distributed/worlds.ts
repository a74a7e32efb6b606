import { tableSql } from '../../proof/oracle/copies.js';
import type { Dice } from '../../proof/oracle/dice.js';
import { asAsked, randomQuestion } from '../../proof/oracle/questions.js';
import { asPolicy, randomWorld, type Table, type World } from '../../proof/oracle/world.js';

/**
 * Random worlds of the oracle, each with one caller, as entities of one server: every table stands twice, in one piece
 * (`w0_alpha_one`) and with its partitions on other servers (`w0_alpha`).
 */
export interface Worlds {
  readonly tables: readonly WorldTable[];
  /** Parts of a manifest and a policy, as their YAML means them. */
  readonly declared: Record<string, unknown>;
  readonly entities: Record<string, unknown>;
  readonly masks: Record<string, unknown>;
  readonly roles: Record<string, unknown>;
  readonly subjects: Record<string, unknown>;
  readonly callers: readonly WorldCaller[];
}

interface WorldTable {
  readonly name: string;
  readonly columns: string;
  /** The column that it is cut by. */
  readonly key: string;
  /** SQL that makes and fills it in one piece. */
  readonly one: string;
}

/** Who asks about one world. */
interface WorldCaller {
  readonly role: string;
  readonly chain: readonly string[];
  /** A question: of the tables that are in pieces, and of those that are not. */
  question(dice: Dice): { readonly parted: string; readonly whole: string };
}

export function worlds(count: number, dice: Dice): Worlds {
  const made = Array.from({ length: count }, (_, i) => ({ name: `w${i}`, world: randomWorld(dice, false) }));
  const tables = made.flatMap(({ name, world }) =>
    world.tables.map((table) => ({ name: `${name}_${table.name}`, table })),
  );
  return {
    tables: tables.map(({ name, table }) => ({
      name,
      columns: table.columns.map((c) => `${c.physical} ${c.type}`).join(', '),
      key: physicalKey(table),
      one: tableSql({ ...table, name }, table.rows, 'one'),
    })),
    declared: Object.fromEntries(
      tables.flatMap(({ name, table }) =>
        ['parts', 'one'].map((schema) => [`${schema}.${name}`, { columns: columnsOf(name, table) }]),
      ),
    ),
    entities: Object.fromEntries(
      tables.flatMap(({ name, table }) => [
        [name, entityOf(`db.parts.${name}`, table)],
        [`${name}_one`, entityOf(`db.one.${name}`, table)],
      ]),
    ),
    masks: Object.fromEntries(
      tables.flatMap(({ name, table }) =>
        [...table.masks].map(([label, kind]) => [`${name}_${label}`, kind]),
      ),
    ),
    roles: Object.fromEntries(made.map(({ name, world }) => [name, roleOf(name, world)])),
    subjects: Object.fromEntries(
      made.flatMap(({ name, world }) =>
        world.subjects.map((attributes, i) => [
          subjectOf(name, i),
          {
            ceiling: [name],
            attributes: Object.fromEntries(
              [...attributes]
                .filter(([, values]) => values === 'any' || values.length > 0)
                .map(([key, values]) => [key, values === 'any' ? { any: true } : [...values]]),
            ),
          },
        ]),
      ),
    ),
    callers: made.map(({ name, world }) => ({
      role: name,
      chain: world.subjects.map((_, i) => subjectOf(name, i)),
      question: (of) => {
        const text = asAsked(randomQuestion(world, of));
        const about = (suffix: string): string =>
          text.replace(/\b(alpha|beta|gamma)\b/g, (table) => `${name}_${table}${suffix}`);
        return { parted: about(''), whole: about('_one') };
      },
    })),
  };
}

function subjectOf(name: string, index: number): string {
  return `user:${name}_${index}`;
}

function physicalKey(table: Table): string {
  return table.columns.find((c) => c.name === 'id')?.physical ?? 'id';
}

function columnsOf(name: string, table: Table): object {
  return Object.fromEntries(
    table.columns.map((c) => [
      c.physical,
      { type: c.type, ...(c.sensitivity === null ? {} : { sensitivity: `${name}_${c.sensitivity}` }) },
    ]),
  );
}

function entityOf(source: string, table: Table): object {
  return {
    source,
    primary_key: ['id'],
    entity_key_columns: [...table.sealed],
    columns: Object.fromEntries(table.columns.map((c) => [c.name, { column: c.physical }])),
  };
}

function roleOf(name: string, world: World): object {
  const each = (table: Table): readonly string[] => [`${name}_${table.name}`, `${name}_${table.name}_one`];
  return {
    grants: world.tables.flatMap((table) =>
      table.grants
        .filter(({ columns }) => columns.size > 0)
        .flatMap(({ columns, unmask, filter }) =>
          each(table).map((on) => ({
            on,
            columns: [...columns],
            unmask: [...unmask].map((label) => `${name}_${table.name}_${label}`),
            ...(filter === null ? {} : { rows: asPolicy(filter) }),
          })),
        ),
    ),
    deny: world.tables.flatMap((table) =>
      table.denied.size === 0 ? [] : each(table).map((on) => ({ on, columns: [...table.denied] })),
    ),
  };
}
