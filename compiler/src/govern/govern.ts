import { type Access, rowAccess } from '../access/access.js';
import type { BoundPlan } from '../bind/index.js';
import type { Catalog } from '../catalog/catalog.js';
import { assertNever } from '../errors/errors.js';
import { isKeyEquality } from '../plan/keys.js';
import type { Expr, FromItem, Operation, Query, Select, SourceId } from '../plan/plan.js';
import { mapQuery } from '../plan/query-tree.js';
import { allLeaves, columnsOf } from '../plan/walk.js';
import { fenceGroupingSets, pushEnumEqualities, withBarrier } from './barrier/barrier.js';
import { EnumValues, inEnumOrder } from './enum-values.js';
import {
  type GovernedPlan,
  type GovernedRuntime,
  type GovernedStore,
  mint,
  type ProofContext,
  stepsOfWalk,
} from './governed-plan.js';
import { scanAccesses } from './groups.js';
import { isKeyCondition, joinKeys, restrictToKeys, toKeyVariant } from './keys.js';
import { enforceMinima } from './minimum.js';
import { breakTies } from './order.js';
import { describeOutputs } from './outputs.js';
import { chooseRollup, type RollupChoice } from './rollup/rollup.js';
import { boundRows, governRuntime, withRowsInPlace } from './runtime.js';
import { governScan, refuseSamples } from './scan.js';
import type { ScanAccesses } from './scan-access.js';
import { GovernedSlots } from './slots.js';
import { PassageFields } from './visible-columns.js';

/** A plan with policy applied, which `mint` must prove before it may run. */
export interface UnprovedPlan {
  readonly fields: Parameters<typeof mint>[0];
  readonly proof: ProofContext;
}

/**
 * Applies policy to a bound plan: each scan becomes a row filter, then a masked projection, before anything else reads
 * it. Governed plans that read the store of a facet are built in `store/` instead.
 *
 * @param compileHop compiles the steps of a traversal, which are OSL-SQL, under the same access
 * @param usable rollups that are built and fresh enough
 * @throws QueryError E0515 for a join on a key that is not clear, E2103 for rows that may only be aggregated
 */
export function applyPolicy(
  plan: BoundPlan,
  access: Access,
  catalog: Catalog,
  compileHop: (text: string) => GovernedPlan,
  usable: ReadonlySet<string> = new Set(),
): UnprovedPlan {
  const slots = new GovernedSlots(plan.slots);
  const choice = chooseRollup(plan, access, catalog, usable, slots);
  const { rolled } = choice;
  if (rolled === null) return applyScans(plan, slots, governScan, access, catalog, compileHop, choice);
  const over = { ...plan, query: rolled.query };
  const proof = { catalog, access, joins: plan.joins, usable };
  return applyScans(over, slots, governScan, rolled.access, catalog, compileHop, choice, proof);
}

/** Applies policy as `applyPolicy` does, and proves the result. */
export function govern(...call: Parameters<typeof applyPolicy>): GovernedPlan {
  const { fields, proof } = applyPolicy(...call);
  return mint(fields, proof);
}

const NONE: ReadonlySet<string> = new Set();
const NO_ROLLUP: RollupChoice = Object.freeze({ rolled: null, passed: Object.freeze([]) });

/** Like `govern`, but takes the slots and the function that governs each scan as arguments. */
export function governWith(...call: Parameters<typeof applyScans>): GovernedPlan {
  const { fields, proof } = applyScans(...call);
  return mint(fields, proof);
}

/**
 * Applies policy to a plan, with `scanOf` to govern each scan.
 *
 * @param proof catalog and rights to prove the plan against; for a plan over a rollup, its access is the caller's
 * access to the entity, not `access`
 */
function applyScans(
  plan: BoundPlan,
  slots: GovernedSlots,
  scanOf: typeof governScan,
  access: Access,
  catalog: Catalog,
  compileHop: (text: string) => GovernedPlan,
  { rolled, passed }: RollupChoice = NO_ROLLUP,
  proof: ProofContext = { catalog, access, joins: plan.joins, usable: NONE },
): UnprovedPlan {
  const whole = withRowsInPlace(plan.query, boundRows(plan.runtime));
  const accesses = scanAccesses(whole, access, plan);
  const labelled = new EnumValues(whole, accesses, plan.literals);
  const bound = breakTies(inEnumOrder(plan.query, labelled, plan, slots), accesses, whole);
  const passages = new PassageFields(plan.runtime, catalog, access);
  const { masked: keys, checked } = joinKeys(bound, accesses, passages, plan);
  const governed = (root: Query, into: GovernedSlots): Query => {
    const scanned = mapQuery(root, {
      item: (i) => (i.kind === 'entity' ? scanOf(i, accesses.of(i), keys.get(i.id), into) : i),
    });
    refuseSamples(scanned, plan);
    const keyed = keys.size === 0 ? scanned : joinedOnKeys(scanned, keys);
    const kept = fenceGroupingSets(enforceMinima(keyed, into), into);
    const sent = plan.runtime.length === 0 ? kept : restrictToKeys(kept, into);
    return pushEnumEqualities(withBarrier(sent, plan.literals, into));
  };
  const query = governed(bound, slots);
  const stepOf = (inner: Query): GovernedPlan => {
    const columns = columnsOf(inner).map(({ type }, i) => ({ name: `key${i + 1}`, type }));
    const step: BoundPlan = { ...plan, form: 'structured', query: inner, runtime: [], columns };
    return governWith(step, new GovernedSlots(plan.slots), scanOf, access, catalog, compileHop);
  };
  const compilers = {
    compileHop,
    step: stepOf,
    query: (inner: Query, into: GovernedSlots) =>
      governed(
        breakTies(inEnumOrder(inner, new EnumValues(inner, accesses, plan.literals), plan, into), accesses),
        into,
      ),
  };
  const runtime = governRuntime(plan.runtime, slots, plan.literals, access, catalog, checked, compilers);
  const grounded = slots.finish();
  const fields = {
    form: plan.form,
    query,
    runtime,
    slots: grounded,
    clientOids: plan.clientOids,
    ...describeOutputs(plan, query, runtime, passages),
    grants: grantsUsed(query, runtime, access, accesses),
    rollup: rolled?.rollup.name ?? null,
    passedRollups: passed,
  };
  return { fields, proof };
}

function joinedOnKeys(query: Query, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Query {
  return mapQuery(query, {
    expr: (e) => inOnKeys(e, keys),
    query: (q) => (q.kind === 'select' ? withKeys(q, keys) : q),
  });
}

/** Rewrites joins and correlations to use the key variants of masked keys (see `keyColumn`). */
function withKeys(query: Select, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Select {
  const on = (e: Operation): Operation =>
    Object.freeze({
      ...e,
      left: e.left === null ? null : toKeyVariant(e.left, keys),
      right: toKeyVariant(e.right, keys),
    });
  const from = (item: FromItem): FromItem => {
    if (item.kind !== 'join') return item;
    const [left, right] = [from(item.left), from(item.right)];
    const conditions = item.on.map((e) => (isKeyEquality(e) ? on(e) : e));
    return Object.freeze({ ...item, left, right, on: Object.freeze(conditions) });
  };
  return Object.freeze({
    ...query,
    from: query.from === null ? null : from(query.from),
    where: Object.freeze(query.where.map((c) => (isKeyCondition(c, query) ? on(c) : c))),
  });
}

/** Rewrites an IN over a subquery to use the key variants on both sides. */
function inOnKeys(expr: Expr, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Expr {
  if (expr.kind !== 'in_query' || expr.query.kind !== 'select') return expr;
  const outputs = expr.query.outputs.map((o) => Object.freeze({ ...o, expr: toKeyVariant(o.expr, keys) }));
  const query = Object.freeze({ ...expr.query, outputs: Object.freeze(outputs) });
  return Object.freeze({ ...expr, arg: toKeyVariant(expr.arg, keys), query });
}

function grantsUsed(
  query: Query,
  runtime: readonly GovernedRuntime[],
  access: Access,
  accesses: ScanAccesses,
): readonly string[] {
  const ids = new Set(runtime.flatMap((r) => grantsOfSteps(r, access)));
  for (const leaf of allLeaves(query))
    if (leaf.kind === 'governed') for (const g of accesses.of(leaf).access.grants) ids.add(g.id);
  return Object.freeze([...ids].sort());
}

/** Returns the ids of the grants that a runtime relation uses: on the facets and entities it reads, or of its plans. */
function grantsOfSteps(runtime: GovernedRuntime, access: Access): readonly string[] {
  const ofStore = ({ facet }: GovernedStore): readonly string[] =>
    [facet.name, facet.entity].flatMap((n) => rowAccess(n, access)?.grants.map((g) => g.id) ?? []);
  switch (runtime.kind) {
    case 'retrieval':
      return runtime.store === null ? [] : ofStore(runtime.store);
    case 'traversal':
      return stepsOfWalk(runtime).flatMap((h) => h.grants);
    case 'hydration':
      return runtime.stores.flatMap(ofStore);
    case 'operated':
      return runtime.rows.grants;
    default:
      return assertNever(runtime);
  }
}
