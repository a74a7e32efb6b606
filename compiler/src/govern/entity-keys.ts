import { type Access, rowAccess } from '../access/access.js';
import type { Catalog } from '../catalog/catalog.js';
import { columnRef, nullOf } from '../plan/nodes.js';
import type {
  ColumnRef,
  CommonTable,
  Expr,
  FromItem,
  GovernedScan,
  PlanOutput,
  Query,
  Select,
  SetOperation,
} from '../plan/plan.js';
import { mapQuery } from '../plan/query-tree.js';
import { allLeaves, changed, columnsOf, exprsOf, nestingIn, someExpr } from '../plan/walk.js';
import type { TypeName } from '../types/types.js';
import { type GovernedPlan, mint, type OutputColumn } from './governed-plan.js';
import { columnRule, maskedColumn } from './mask.js';
import { GovernedSlots } from './slots.js';
import { mayRead } from './verify/scans.js';

/** The primary key of an entity in the rows of a plan. */
export interface EntityKey {
  readonly entity: string;
  /** Indices of the key's columns in a row. All of them are NULL if the row shows no such entity. */
  readonly columns: readonly number[];
}

/** A plan whose outputs are followed by key columns: the keys of the entities that each row shows. */
export interface KeyedPlan {
  readonly plan: GovernedPlan;
  readonly keys: readonly EntityKey[];
}

/** An entity that cannot be identified from the rows of a plan that reads it, and the reason. */
export interface UnknownEntities {
  readonly entity: string;
  readonly reason: string;
}

/**
 * Extends a plan by the keys of all `entities` that its rows show, and proves it again. Returns null if its rows show
 * none of them, because it does not read them or only reads groups that policy requires to be large.
 */
export function withEntityKeys(
  plan: GovernedPlan,
  entities: ReadonlySet<string>,
  catalog: Catalog,
  access: Access,
): KeyedPlan | UnknownEntities | null {
  const passages = passagesOf(plan, entities, catalog);
  if (passages !== null) return { entity: passages, reason: IN_PASSAGES };
  const carrier = new KeyCarrier(entities, catalog, access, new GovernedSlots(plan.slots));
  try {
    const { query, keys } = carrier.carry(readingFrom(plan.query, catalog), false);
    if (keys.length === 0) return null;
    const outputs = [...plan.outputs, ...columnsOf(query).slice(plan.outputs.length).map(keyOutput)];
    const fields = { ...plan, query, slots: carrier.slots.finish(), outputs: Object.freeze(outputs) };
    // The proof of `plan` covered the joins that the caller may write, and the joins are unchanged.
    const proof = { catalog, access, joins: null, usable: NO_ROLLUPS };
    const positions = keys.map(({ entity, columns }) => ({ entity, columns: columns.map((c) => c - 1) }));
    return { plan: mint(fields, proof), keys: positions };
  } catch (error) {
    if (error instanceof UnknownKeys) return { entity: error.entity, reason: error.message };
    throw error;
  }
}

const NO_ROLLUPS: ReadonlySet<string> = new Set();

/** Replaces relations by those of `catalog`, which may be a newly loaded copy of the plan's catalog. */
function readingFrom(query: Query, { relations }: Catalog): Query {
  return mapQuery(query, {
    item: (item) => {
      if (item.kind !== 'governed' || item.relation.kind === 'facet' || item.relation.rollup !== undefined)
        return item;
      return changed(item, { relation: relations.get(item.relation.name) ?? item.relation });
    },
  });
}

/** Returns one of `entities` whose rows or passages a plan with runtime steps reads; null if there is none. */
function passagesOf(
  { runtime, objects }: GovernedPlan,
  entities: ReadonlySet<string>,
  { facets }: Catalog,
): string | null {
  if (runtime.length === 0) return null;
  const read = new Set(objects);
  const ofFacets = [...facets.values()].flatMap((f) => (read.has(`osl.facets.${f.name}`) ? [f.entity] : []));
  return [...entities].find((name) => ofFacets.includes(name) || read.has(`osl.entities.${name}`)) ?? null;
}

function keyOutput({ type }: { readonly type: TypeName }, i: number): OutputColumn {
  return Object.freeze({
    ...{ name: `#key ${i + 1}`, type, form: null, source: null, format: null },
    ...{ redacted: false, redactable: Object.freeze([]), passageKey: false },
  });
}

/** Thrown and caught only in this file. */
class UnknownKeys extends Error {
  readonly entity: string;

  constructor(entity: string, reason: string) {
    super(reason);
    this.entity = entity;
  }
}

/** The key of an entity among the outputs of a query. `columns` are output positions, counted from 1. */
interface BlockKey {
  readonly entity: string;
  readonly columns: readonly number[];
  readonly types: readonly TypeName[];
}

/** The key of an entity that FROM shows, as columns that the block can read. */
interface FromKey {
  readonly entity: string;
  readonly refs: readonly ColumnRef[];
}

interface CarriedQuery {
  readonly query: Query;
  readonly keys: readonly BlockKey[];
}

interface CarriedItem<T extends FromItem> {
  readonly item: T;
  readonly keys: readonly FromKey[];
}

const NO_KEYS: readonly never[] = Object.freeze([]);

/** Window functions whose result contains no value of another row. */
const RANKS: ReadonlySet<string> = new Set([
  ...['row_number', 'rank', 'dense_rank', 'percent_rank', 'cume_dist', 'ntile'],
]);

/**
 * Adds the keys of scans to the outputs of each level up to the rows of a statement.
 *
 * INVARIANT: if a row of a block does not determine the entities that it comes from, the block fails with UnknownKeys.
 */
class KeyCarrier {
  readonly slots: GovernedSlots;
  readonly #entities: ReadonlySet<string>;
  readonly #catalog: Catalog;
  readonly #access: Access;
  /** The keys in the outputs of common tables that read an entity, by table id. */
  readonly #tables = new Map<number, readonly BlockKey[]>();

  constructor(entities: ReadonlySet<string>, catalog: Catalog, access: Access, slots: GovernedSlots) {
    this.#entities = entities;
    this.#catalog = catalog;
    this.#access = access;
    this.slots = slots;
  }

  /** Adds entity keys to the outputs. @param reuses true if keys that are already outputs are not repeated */
  carry(query: Query, reuses: boolean): CarriedQuery {
    const entity = this.#readBy(query);
    if (entity === null) return { query, keys: NO_KEYS };
    switch (query.kind) {
      case 'values':
        throw new UnknownKeys(entity, IN_SUBQUERY);
      case 'set_operation':
        return this.#operands(query, entity);
      case 'select':
        return this.#block(query, reuses);
    }
  }

  /** Returns a requested entity that `query` reads at any depth; null if there is none. */
  #readBy(query: Query): string | null {
    for (const leaf of allLeaves(query)) {
      const own = leaf.kind === 'governed' ? this.#countedIn(leaf) : null;
      if (own !== null) return own;
      const keys = leaf.kind === 'cte' ? this.#tables.get(leaf.table) : undefined;
      if (keys?.[0] !== undefined) return keys[0].entity;
    }
    return null;
  }

  /**
   * Returns the requested entity that the rows of a scan show; null if there is none. Rows that policy shows only in
   * large groups show no single entity.
   */
  #countedIn({ relation, minimum }: GovernedScan): string | null {
    const { kind, name } = relation;
    const entity = kind === 'facet' ? (this.#catalog.facets.get(name)?.entity ?? name) : name;
    return this.#entities.has(entity) && minimum?.everyRow !== true ? entity : null;
  }

  #commonTables(tables: readonly CommonTable[]): readonly CommonTable[] {
    return tables.map((table) => {
      const entity = this.#readBy(table.query);
      if (entity === null) return table;
      if (table.recursive === true) throw new UnknownKeys(entity, 'WITH RECURSIVE reads it');
      const { query, keys } = this.carry(table.query, true);
      this.#tables.set(table.id, keys);
      return changed(table, { query });
    });
  }

  #operands(query: SetOperation, entity: string): CarriedQuery {
    const tables = this.#commonTables(query.with);
    if (query.operator !== 'union' || !query.all)
      throw new UnknownKeys(entity, 'UNION, INTERSECT or EXCEPT makes one row of several');
    const [left, right] = [this.carry(query.left, false), this.carry(query.right, false)];
    const keys = left.keys.length === 0 ? right.keys : left.keys;
    const isAlike = ({ keys: own }: CarriedQuery): boolean =>
      own.length === 0 || shapeOf(own) === shapeOf(keys);
    if (!isAlike(left) || !isAlike(right))
      throw new UnknownKeys(entity, 'the operands of UNION ALL show different entities');
    const types = keys.flatMap((key) => key.types);
    const whole = (operand: CarriedQuery): Query =>
      operand.keys.length === 0 ? withNulls(operand.query, types) : operand.query;
    const columns = [...query.columns, ...types.map((type) => ({ name: '#key', type }))];
    return {
      query: Object.freeze({ ...query, with: tables, left: whole(left), right: whole(right), columns }),
      keys,
    };
  }

  #block(query: Select, reuses: boolean): CarriedQuery {
    const tables = this.#commonTables(query.with);
    for (const { query: nested } of nestingIn(query)) {
      const entity = this.#readBy(nested);
      if (entity !== null) throw new UnknownKeys(entity, IN_SUBQUERY);
    }
    const { item: from, keys } = query.from === null ? { item: null, keys: NO_KEYS } : this.#item(query.from);
    for (const key of keys) requireRows(query, key);
    const outputs: PlanOutput[] = [...query.outputs];
    const carried = keys.map(({ entity, refs }) => ({
      entity,
      types: refs.map(({ type }) => type),
      columns: refs.map((expr) => {
        const known = reuses ? outputs.findIndex((o) => isSame(o.expr, expr)) : -1;
        return known < 0 ? outputs.push(Object.freeze({ name: '#key', expr })) : known + 1;
      }),
    }));
    return {
      query: Object.freeze({ ...query, with: tables, from, outputs: Object.freeze(outputs) }),
      keys: carried,
    };
  }

  #item(item: FromItem): CarriedItem<FromItem> {
    switch (item.kind) {
      case 'join': {
        const [left, right] = [this.#item(item.left), this.#item(item.right)];
        const joined = Object.freeze({ ...item, left: left.item, right: right.item });
        return { item: joined, keys: [...left.keys, ...right.keys] };
      }
      case 'governed':
        return this.#countedIn(item) === null ? { item, keys: NO_KEYS } : this.#scan(item);
      case 'derived': {
        const { query, keys } = this.carry(item.query, true);
        return { item: changed(item, { query }), keys: keys.map((key) => refsOf(item.id, key)) };
      }
      case 'cte': {
        const keys = this.#tables.get(item.table) ?? NO_KEYS;
        return { item, keys: keys.map((key) => refsOf(item.id, key)) };
      }
      case 'spine': {
        const entity = this.#readBy(item.bounds);
        if (entity !== null) throw new UnknownKeys(entity, IN_SUBQUERY);
        return { item, keys: NO_KEYS };
      }
      case 'entity':
      case 'recursion':
      case 'runtime':
      case 'rows':
        return { item, keys: NO_KEYS };
    }
  }

  #scan(scan: GovernedScan): CarriedItem<GovernedScan> {
    const { relation, minimum, columns, id } = scan;
    const entity = relation.name;
    if (relation.kind === 'facet') throw new UnknownKeys(this.#countedIn(scan) ?? entity, IN_PASSAGES);
    if (minimum !== null || relation.rollup !== undefined) throw new UnknownKeys(entity, IN_GROUPS);
    const access = rowAccess(entity, this.#access);
    const { primaryKey } = relation;
    if (primaryKey.length === 0) throw new UnknownKeys(entity, 'it has no primary key');
    const added = primaryKey.flatMap((name) => {
      if (access === undefined || !mayRead(name, access))
        throw new UnknownKeys(entity, 'its primary key is not granted');
      const rule = columnRule(relation, name, access);
      if (!PLAIN.has(rule.column.type))
        throw new UnknownKeys(entity, `its primary key is of type ${rule.column.type}`);
      // Other masks would make all keys equal; a keyed hash keeps the entities apart.
      if (rule.masked !== 'none' && rule.mask !== 'hash')
        throw new UnknownKeys(entity, 'its primary key is masked');
      return columns.some((c) => c.name === name) ? [] : [maskedColumn(rule, this.slots)];
    });
    const item = Object.freeze({ ...scan, columns: Object.freeze([...columns, ...added]) });
    const refs = primaryKey.map((name) => {
      const type = item.columns.find((c) => c.name === name)?.type ?? 'text';
      return columnRef(id, name, type);
    });
    return { item, keys: [{ entity, refs }] };
  }
}

/** Types whose text form does not depend on session settings. */
const PLAIN: ReadonlySet<TypeName> = new Set<TypeName>([
  ...(['bool', 'int2', 'int4', 'int8', 'numeric', 'text', 'bpchar', 'uuid'] as const),
]);

const IN_PASSAGES = 'RETRIEVE, TRAVERSE or an operator reads it';
const IN_SUBQUERY = 'a subquery of an expression reads it';
const IN_GROUPS = 'rows are aggregated in groups that are not of one each';

/** Requires that all FROM rows that make one output row of `query` have the same `key`. @throws UnknownKeys */
function requireRows(query: Select, { entity, refs }: FromKey): void {
  const isIn = (list: readonly Expr[]): boolean => refs.every((ref) => list.some((e) => isSame(e, ref)));
  if (query.grouped && (query.groupingSets !== null || !isIn(query.groupBy)))
    throw new UnknownKeys(entity, IN_GROUPS);
  if (query.distinct && !isIn(query.outputs.map((o) => o.expr)))
    throw new UnknownKeys(entity, 'DISTINCT makes one row of several');
  const reachesOver = (e: Expr): boolean => e.kind === 'window' && !RANKS.has(e.definition.name);
  if (exprsOf(query).some((e) => someExpr(e, reachesOver)))
    throw new UnknownKeys(entity, 'a window function reads other rows');
}

function isSame(a: Expr, b: ColumnRef): boolean {
  return a.kind === 'column' && a.source === b.source && a.name === b.name;
}

function refsOf(source: number, { entity, columns, types }: BlockKey): FromKey {
  return { entity, refs: columns.map((c, i) => columnRef(source, `c${c}`, types[i] ?? 'text')) };
}

function shapeOf(keys: readonly BlockKey[]): string {
  return JSON.stringify(keys.map(({ entity, types, columns }) => [entity, types, columns]));
}

/** Adds a NULL of each type to the outputs of `query`. */
function withNulls(query: Query, types: readonly TypeName[]): Query {
  const nulls = types.map((type) => nullOf(type));
  const columns = types.map((type) => ({ name: '#key', type }));
  switch (query.kind) {
    case 'select': {
      const outputs = [...query.outputs, ...nulls.map((expr) => ({ name: '#key', expr }))];
      return Object.freeze({ ...query, outputs: Object.freeze(outputs) });
    }
    case 'values':
      return Object.freeze({
        ...query,
        rows: query.rows.map((row) => [...row, ...nulls]),
        columns: [...query.columns, ...columns],
      });
    case 'set_operation':
      return Object.freeze({
        ...query,
        left: withNulls(query.left, types),
        right: withNulls(query.right, types),
        columns: [...query.columns, ...columns],
      });
  }
}
