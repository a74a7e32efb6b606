import { type Access, grantsOn, type RelationAccess, showsRows } from '../../access/access.js';
import type { BoundPlan } from '../../bind/index.js';
import { type Catalog, type Column, columnOf, type Relation, type Rollup } from '../../catalog/catalog.js';
import type { EntityScan, Query, Select } from '../../plan/plan.js';
import { mapQuery } from '../../plan/query-tree.js';
import { allLeaves, allQueries, changed, nestingIn, nodesIn } from '../../plan/walk.js';
import { columnRule } from '../mask.js';
import type { GovernedSlots } from '../slots.js';
import { ROLLUP_ROWS, ROLLUP_TIME, RolledBlock, type RollupFault } from './rolled-block.js';

/** A rollup of an entity that a query reads, and the reason why it cannot answer the query. */
export interface UnusedRollup {
  readonly name: string;
  readonly why: RollupFault;
}

/** A query over a rollup instead of its entity. */
interface RollupQuestion {
  readonly rollup: Rollup;
  readonly query: Query;
  /** The caller's rights on the rollup: those on the entity, plus the rollup's own columns. */
  readonly access: Access;
}

/** The rollup that answers a query, and those that cannot. */
export interface RollupChoice {
  readonly rolled: RollupQuestion | null;
  readonly passed: readonly UnusedRollup[];
}

const NO_CHOICE: RollupChoice = Object.freeze({ rolled: null, passed: Object.freeze([]) });

/**
 * Finds the rollup that can answer `plan` for a caller with `access`, depending on the grain and filters of the query
 * and the row filters and masks of the grants. If there are several, returns the one with the fewest dimensions.
 * `verifyRollup` checks the result, and shares no code with this.
 *
 * @param usable names of the rollups that are built and fresh enough
 */
export function chooseRollup(
  plan: BoundPlan,
  access: Access,
  catalog: Catalog,
  usable: ReadonlySet<string>,
  slots: GovernedSlots,
): RollupChoice {
  const { rollups = [] } = catalog;
  if (rollups.length === 0) return NO_CHOICE;
  const scans = allLeaves(plan.query).filter((l) => l.kind === 'entity');
  const read = new Set(scans.map((s) => s.relation.name));
  const candidates = rollups
    .filter((r) => read.has(r.entity))
    .sort((a, b) => a.dimensions.length - b.dimensions.length);
  const passed: UnusedRollup[] = [];
  let rolled: RollupQuestion | null = null;
  for (const rollup of candidates) {
    if (rolled !== null) break;
    const [scan] = scans;
    const block =
      scan === undefined || scans.length > 1 || plan.runtime.length > 0 ? null : blockOf(plan.query, scan);
    const found = usable.has(rollup.name)
      ? block === null || scan === undefined
        ? 'the question reads rows singly, or more than this entity'
        : overRollup(rollup, plan, block, scan, access, slots)
      : 'it is not built, or too old';
    if (typeof found === 'string') passed.push(Object.freeze({ name: rollup.name, why: found }));
    else rolled = found;
  }
  return Object.freeze({ rolled, passed: Object.freeze(passed) });
}

/** Returns the block that aggregates the rows of `scan` and reads nothing else; null if there is no such block. */
function blockOf(root: Query, scan: EntityScan): Select | null {
  const block = allQueries(root).find((q) => q.kind === 'select' && q.from === scan);
  const isSole = block?.kind === 'select' && block.grouped && nestingIn(block).length === 0;
  return isSole && scan.sample === undefined ? block : null;
}

function overRollup(
  rollup: Rollup,
  plan: BoundPlan,
  block: Select,
  scan: EntityScan,
  access: Access,
  slots: GovernedSlots,
): RollupQuestion | RollupFault {
  const { relation } = scan;
  const granted = grantsOn(relation, access);
  if (!granted.grants.every(showsRows)) return 'a minimum group size applies';
  const dimensions = rollup.dimensions.flatMap((name) => columnOf(relation, name) ?? []);
  if (readsBeyond(granted, new Set(dimensions.map((c) => c.physical))))
    return 'a row filter of the grants reads what is no dimension';
  const rolled = new RolledBlock(rollup, scan.id, plan.literals, slots);
  const rewritten = rolled.rewrite(block);
  if (rolled.fault !== null) return rolled.fault;
  const isClear = (name: string): boolean => columnRule(relation, name, granted).masked === 'none';
  if (![...rolled.clear].every(isClear)) return 'a column that is aggregated is masked';
  const rolledRelation = rollupRelation(rollup, relation, dimensions);
  const from: EntityScan = Object.freeze({
    kind: 'entity',
    id: scan.id,
    relation: rolledRelation,
    columns: Object.freeze([...rolled.used]),
  });
  const over = changed(rewritten, { from });
  const query = mapQuery(plan.query, { query: (q) => (q === block ? over : q) });
  return Object.freeze({ rollup, query, access: withOwnColumns(access, relation, granted, rolledRelation) });
}

/** True if some grant's filter reads a column of the table that is not in `physical`. */
function readsBeyond({ grants }: RelationAccess, physical: ReadonlySet<string>): boolean {
  const filters = grants.flatMap(({ filter }) => filter ?? []);
  return nodesIn(filters, 'base').some((e) => !physical.has(e.column));
}

/** Returns the rollup's table as a relation: the entity's dimensions and the rollup's own columns. */
function rollupRelation(rollup: Rollup, relation: Relation, dimensions: readonly Column[]): Relation {
  const own = ownColumns(rollup).map(
    ({ name, type }): Column =>
      Object.freeze({
        name,
        physical: name,
        type,
        description: null,
        nullable: true,
        sensitivity: null,
        keyDomain: null,
      }),
  );
  return Object.freeze({
    kind: 'entity',
    name: relation.name,
    description: relation.description,
    connector: relation.connector,
    schema: rollup.schema,
    table: rollup.table,
    columns: Object.freeze([...dimensions, ...own]),
    primaryKey: Object.freeze([]),
    sealedKeys: Object.freeze([]),
    rollup: rollup.name,
  });
}

function ownColumns({ time, measures }: Rollup) {
  return [
    { name: ROLLUP_ROWS, type: 'int8' as const },
    ...(time === null ? [] : [{ name: ROLLUP_TIME, type: 'timestamp' as const }]),
    ...measures.flatMap((m) => [m.count, m.sum, m.min, m.max].filter((c) => c !== null)),
  ];
}

/** Grants the rollup's own columns. `overRollup` has checked that the caller sees the data they derive from. */
function withOwnColumns(
  access: Access,
  relation: Relation,
  granted: RelationAccess,
  rolledRelation: Relation,
): Access {
  const own = rolledRelation.columns.flatMap((c) => (columnOf(relation, c.name) === null ? [c.name] : []));
  const grants = granted.grants.map((g) => Object.freeze({ ...g, columns: new Set([...g.columns, ...own]) }));
  const relations = new Map(access.relations);
  relations.set(relation.name, Object.freeze({ ...granted, grants: Object.freeze(grants) }));
  return Object.freeze({ ...access, relations });
}
