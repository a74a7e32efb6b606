import {
  type Access,
  type AttributePattern,
  bindPredicate,
  type Catalog,
  type Column,
  forChain,
  type MaskKind,
  type Relation,
  type RelationAccess,
  ready,
  type ScalarType,
} from 'osl-compiler';
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
];

export const LABELS = ['l1', 'l2', 'l3'];
export const MASK_KINDS: readonly MaskKind[] = ['redact', 'null', 'hash', 'partial', 'year', 'deny'];
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
  ['id', 'id < 5'],
  ['id', 'id % 3 <> 0'],
  ['ref', 'ref > 1'],
  ['k', "k <> 'y'"],
];

export function randomWorld(dice: Dice): World {
  const subjects = dice.times(1, 2, () => randomSubject(dice));
  return { tables: ['alpha', 'beta', 'gamma'].map((name) => randomTable(name, dice)), subjects };
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
  return { name, columns, sealed: ['id', 'k', 'ref'], rows, ...randomRights(columns, dice) };
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
  return {
    version: 'v',
    relations: new Map(world.tables.map((t) => [t.name, relationOf(t, schema)])),
    metrics: new Map(),
    facets: new Map(),
    edges: [],
  };
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
  };
}

export function accessOf(world: World): Access {
  const chain: readonly AttributePattern[] = world.subjects.map(
    (s) => new Map([...s].map(([name, v]) => [name, v === 'any' ? 'any' : 'values'])),
  );
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
