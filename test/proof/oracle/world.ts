import {
  type Access,
  attributePattern,
  bindPredicate,
  type Catalog,
  type Column,
  computedFacts,
  type Edge,
  forChain,
  type MaskKind,
  type Relation,
  type RelationAccess,
  ready,
  type ScalarType,
} from 'osl-compiler';
import { computed } from '../golden/catalog.js';
import type { Dice } from './dice.js';

await ready();

/** A random schema, its rows, and what one caller may see of them. */
export interface World {
  readonly tables: readonly Table[];
  readonly subjects: readonly Subject[];
}

export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  readonly sealed: readonly string[];
  /** Values as SQL literals without quotes; null is NULL. In the order of `columns`. */
  readonly rows: readonly (readonly (string | null)[])[];
  readonly grants: readonly Grant[];
  readonly masks: ReadonlyMap<string, MaskKind>;
  readonly denied: ReadonlySet<string>;
  readonly computed: readonly Computed[];
}

/**
 * A computed column: its expression, and the same in SQL over the copies, where `@` stands for the row and `#` for their
 * schema; with the next table looked up, and with it joined as `p`.
 */
export interface Computed {
  readonly name: string;
  readonly type: ScalarType;
  readonly expression: string;
  readonly copied: string;
  readonly joined: string;
  readonly reads: readonly (readonly [table: string, column: string])[];
  readonly keys: readonly (readonly [table: string, column: string])[];
}

export interface Grant {
  readonly columns: ReadonlySet<string>;
  readonly unmask: ReadonlySet<string>;
  readonly filter: Filter | null;
}

/** A row filter; `@column:attribute` in its text compares a column with an attribute. */
export interface Filter {
  readonly text: string;
}

/** A chain subject: for each attribute its values, or `any`. An attribute that is not here is missing. */
export type Subject = ReadonlyMap<string, 'any' | readonly string[]>;

const VALUES: Readonly<Partial<Record<ScalarType, readonly string[]>>> = {
  int4: ['0', '1', '2', '3', '-1', '57'],
  text: ['x', 'y', 'xy', 'Zed', '[redacted]', '', 'äöü', 'x'],
  numeric: ['0', '1', '1.50', '-3', '57', '2'],
  float8: ['0', '0.5', '-2', '8'],
  date: ['1999-05-06', '2000-01-01', '2020-02-29', '1999-11-12'],
  timestamptz: ['1999-12-31 23:30:00+00', '2020-06-01 12:00:00+00', '2020-06-02 00:00:00+00'],
  timestamp: ['2001-02-03 04:05:06', '2001-12-03 00:00:00'],
  bool: ['true', 'false'],
  uuid: ['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002'],
  inet: ['10.0.0.1', '10.0.0.9/8', '192.168.0.1', '255.255.255.255'],
  int4range: ['[1,3)', 'empty', '(,57)', '[2,2147483647)'],
  tsvector: ['x y', 'zed', ''],
  jsonb: ['{"a": 1}', '{"a": 2, "b": [1]}', '[]', 'null'],
};

const POOL: readonly (readonly [string, ScalarType])[] = [
  ['t1', 'text'],
  ['t2', 'text'],
  ['i1', 'int4'],
  ['i2', 'int4'],
  ['n1', 'numeric'],
  ['f1', 'float8'],
  ['d1', 'date'],
  ['d2', 'date'],
  ['ts1', 'timestamptz'],
  ['sp1', 'timestamp'],
  ['b1', 'bool'],
  ['u1', 'uuid'],
  ['j1', 'jsonb'],
  ['h1', 'inet'],
  ['r1', 'int4range'],
  ['w1', 'tsvector'],
];

export const LABELS = ['l1', 'l2', 'l3'];
const MASK_KINDS: readonly MaskKind[] = ['redact', 'null', 'hash', 'partial', 'year', 'deny'];
const ATTRIBUTES = ['ts', 'is'];

const FILTERS: readonly (readonly [string, string])[] = [
  ['i1', 'i1 > 0'],
  ['i1', 'i1 in (1, 2)'],
  ['i1', 'i1 % 2 = 0'],
  ['i1', '@i1:is'],
  ['i2', 'i2 is not null and i2 < 3'],
  ['t1', "t1 = 'x'"],
  ['t1', "t1 like 'x%'"],
  // Dear ones, which the planner would rather run after the caller's own predicates.
  ['t1', "lower(upper(lower(upper(lower(t1))))) in ('x', 'y', '')"],
  ['k', "lower(upper(lower(upper(lower(k))))) <> 'y'"],
  ['t1', '@t1:ts'],
  ['t1', 'not (@t1:ts)'],
  ['t2', "coalesce(t2, 'x') = 'x'"],
  ['b1', 'b1'],
  ['n1', 'n1 < 2'],
  ['d1', "d1 >= '2000-01-01'"],
  ['h1', "h1 <<= '10.0.0.0/8'"],
  ['r1', "r1 && '[2,3)'"],
  ['id', 'id < 5'],
  ['id', 'id % 3 <> 0'],
  ['ref', 'ref > 1'],
  ['k', "k <> 'y'"],
];

/** @param computes whether entities have computed columns, which raw SQL has not */
export function randomWorld(dice: Dice, computes = true): World {
  const subjects = dice.times(1, 2, () => randomSubject(dice));
  const tables = ['alpha', 'beta', 'gamma'].map((name) => randomTable(name, dice));
  if (!computes) return { tables, subjects };
  return {
    tables: tables.map((table, i) => ({ ...table, computed: randomComputed(table, tables[i + 1], dice) })),
    subjects,
  };
}

function randomSubject(dice: Dice): Subject {
  const subject = new Map<string, 'any' | readonly string[]>();
  for (const name of ATTRIBUTES) {
    if (dice.chance(0.08)) continue;
    subject.set(
      name,
      dice.chance(0.1) ? 'any' : dice.some(VALUES[name === 'ts' ? 'text' : 'int4'] ?? [], 0.5),
    );
  }
  return subject;
}

/** What computed columns may say; none of it can fail. `^` is a column of the next table, which `ref` leads to. */
const COMPUTED: readonly (readonly [
  type: ScalarType,
  text: string,
  own: readonly string[],
  far: readonly string[],
])[] = [
  ['int4', '@i1 + @i2', ['i1', 'i2'], []],
  ['text', "@t1 || '-' || coalesce(@t2, 'none')", ['t1', 't2'], []],
  ['bool', '@n1 < 2 or @b1', ['n1', 'b1'], []],
  ['text', "case when @id > 3 then 'high' else @k end", ['id', 'k'], []],
  ['text', '^t1', [], ['t1']],
  ['int4', 'coalesce(^i1, @id)', ['id'], ['i1']],
  ['text', "upper(^k) || coalesce(@t1, '')", ['t1'], ['k']],
  ['bool', '^d1 > @d1', ['d1'], ['d1']],
];

function randomComputed(table: Table, next: Table | undefined, dice: Dice): readonly Computed[] {
  const has = (of: Table | undefined, names: readonly string[]): boolean =>
    names.every((n) => of?.columns.some((c) => c.name === n) === true);
  const possible = COMPUTED.filter(
    ([, , own, far]) => has(table, own) && (far.length === 0 || has(next, far)),
  );
  return dice.some(possible, 0.4).map(([type, text, own, far], i): Computed => {
    const keys =
      far.length === 0 || next === undefined
        ? []
        : [[table.name, 'ref'] as const, [next.name, 'id'] as const];
    const away = next?.name ?? '';
    return {
      name: `z${i + 1}`,
      type,
      expression: text.replaceAll('@', '').replaceAll('^', `${away}.`),
      copied: text.replace(/\^(\w+)/g, (_, column: string) => {
        return `(select p.${column} from #${away} p where p.id_key = @ref_key)`;
      }),
      joined: text.replaceAll('^', 'p.'),
      reads: [...own.map((c) => [table.name, c] as const), ...far.map((c) => [away, c] as const), ...keys],
      keys,
    };
  });
}

/** Those of a table that the caller may use. */
export function visibleComputed(table: Table, world: World): readonly Computed[] {
  const seen = new Map(
    world.tables.map((t) => [t.name, new Map(visibleColumns(t).map((v) => [v.column.name, v]))]),
  );
  return table.computed.filter(
    ({ reads, keys }) =>
      reads.every(([of, column]) => seen.get(of)?.has(column)) &&
      keys.every(([of, column]) => seen.get(of)?.get(column)?.masked !== 'all'),
  );
}

function randomTable(name: string, dice: Dice): Table {
  const labelled = (p: number): string | null => (dice.chance(p) ? dice.of(LABELS) : null);
  const column = (of: string, type: ScalarType, sensitivity: string | null): Column => ({
    name: of,
    physical: dice.chance(0.2) ? `p_${of}` : of,
    type,
    description: null,
    nullable: true,
    sensitivity,
    keyDomain: of === 'k' ? 'k' : null,
  });
  const columns = [
    column('id', 'int4', labelled(0.04)),
    column('k', 'text', labelled(0.5)),
    column('ref', 'int4', labelled(0.1)),
    ...dice.some(POOL, 0.6).map(([of, type]) => column(of, type, labelled(0.5))),
  ];
  const rows = dice.times(dice.of([0, 3, 5, 5]), 10, (i) =>
    columns.map((c) => (c.name === 'id' ? String(i + 1) : randomValue(c, dice))),
  );
  return { name, columns, sealed: ['id', 'k', 'ref'], rows, computed: [], ...randomRights(columns, dice) };
}

export function randomValue(column: Column, dice: Dice): string | null {
  if (dice.chance(0.15)) return null;
  const values = column.name === 'ref' ? ['1', '2', '3', '4'] : VALUES[column.type as ScalarType]; // no array here
  return dice.of(values ?? []);
}

function randomRights(columns: readonly Column[], dice: Dice): Pick<Table, 'grants' | 'masks' | 'denied'> {
  const names = columns.map((c) => c.name);
  const filters = FILTERS.filter(([needs]) => names.includes(needs)).map(([, text]) => ({ text }));
  const few = dice.times(1, 2, () => (dice.chance(0.35) ? null : dice.of(filters)));
  const grants = dice.times(1, 3, () => ({
    columns: new Set(names.filter((n) => dice.chance(n === 'id' ? 0.95 : 0.85))),
    unmask: new Set(dice.some(LABELS, 0.35)),
    filter: dice.of(few),
  }));
  return {
    grants,
    masks: new Map(LABELS.map((l) => [l, dice.of(MASK_KINDS)])),
    denied: new Set(dice.some(names, 0.02)),
  };
}

// ---------------------------------------------------------------- as the compiler sees it

export function catalogOf(world: World, schema: string): Catalog {
  const plain = new Map(world.tables.map((t) => [t.name, relationOf(t, schema)]));
  const edges = world.tables.slice(1).map(({ name }, i): Edge => {
    const from = world.tables[i]?.name ?? '';
    return { name: `to_${name}`, from, to: name, fromColumns: ['ref'], toColumns: ['id'], bridge: null };
  });
  const catalog = { version: 'v', relations: plain, metrics: new Map(), facets: new Map(), edges };
  const relations = [...plain.values()].map((r): [string, Relation] => {
    const computed = r.computed?.map((c) => ({ ...c, ...computedFacts(c.name, r, catalog) }));
    return [r.name, computed === undefined ? r : { ...r, computed }];
  });
  return { ...catalog, joins: 'any', relations: new Map(relations) };
}

function relationOf(table: Table, schema: string): Relation {
  return {
    kind: 'entity',
    name: table.name,
    description: null,
    connector: 'main',
    schema,
    table: table.name,
    columns: table.columns,
    primaryKey: ['id'],
    sealedKeys: table.sealed,
    computed: table.computed.map(({ name, type, expression }) => computed(name, expression, type)),
  };
}

export function accessOf(world: World): Access {
  const chain = world.subjects.map(attributePattern);
  const relations = world.tables.map((table): [string, RelationAccess] => {
    const relation = relationOf(table, '');
    const grants = table.grants.map((g, i) => ({
      id: `${table.name}-${i}`,
      columns: g.columns,
      unmask: g.unmask,
      filter: g.filter === null ? null : forChain(bindPredicate(asPolicy(g.filter), relation), chain),
    }));
    return [table.name, { grants, masks: table.masks, denied: table.denied }];
  });
  return { signature: 's', policyVersion: 'p', chainLength: chain.length, relations: new Map(relations) };
}

export function asPolicy(filter: Filter): string {
  return filter.text.replace(/@(\w+):(\w+)/g, "$1 = attribute('$2')");
}

// ---------------------------------------------------------------- what the caller may see, worked out apart from the compiler

export interface Visible {
  readonly column: Column;
  /** Shown in the clear in every visible row; masked in some; in all. */
  readonly masked: 'none' | 'some' | 'all';
  /** How it is masked where it is: the mask of its label, as far as its type bears it. */
  readonly mask: MaskKind;
}

export function visibleColumns(table: Table): readonly Visible[] {
  return table.columns.flatMap((column): readonly Visible[] => {
    const covering = table.grants.filter((g) => g.columns.has(column.name));
    if (covering.length === 0 || table.denied.has(column.name)) return [];
    const clearing = covering.filter((g) => isClear(column, g));
    const mask = effectiveMask(column, table);
    if (clearing.length === 0 && mask === 'deny') return [];
    const everyRow = table.grants.every((g) =>
      clearing.some((c) => c.filter === null || c.filter.text === g.filter?.text),
    );
    return [{ column, mask, masked: everyRow ? 'none' : clearing.length === 0 ? 'all' : 'some' }];
  });
}

export function isClear(column: Column, grant: Grant): boolean {
  return (
    grant.columns.has(column.name) && (column.sensitivity === null || grant.unmask.has(column.sensitivity))
  );
}

export function effectiveMask(column: Column, table: Table): MaskKind {
  const kind = column.sensitivity === null ? 'redact' : (table.masks.get(column.sensitivity) ?? 'deny');
  if ((kind === 'hash' || kind === 'partial') && column.type !== 'text') return 'redact';
  if (kind === 'year' && !['date', 'timestamp', 'timestamptz'].includes(column.type)) return 'redact';
  return kind;
}
