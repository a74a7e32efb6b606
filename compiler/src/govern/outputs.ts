import type { BoundPlan } from '../bind/index.js';
import { columnOf } from '../catalog.js';
import { queryError } from '../errors.js';
import { fullName } from '../full-name.js';
import type { ColumnRef, Expr, GovernedScan, Query } from '../plan.js';
import { allQueries, leavesOf, someExpr } from '../walk.js';
import type { GovernedRuntime, OutputColumn } from './governed-plan.js';
import { Lineage, outputsAt } from './lineage.js';

/** What the answer's reader and the audit log are told of a governed query. */
export function describeOutputs(plan: BoundPlan, query: Query, runtime: readonly GovernedRuntime[]) {
  const lineage = new Lineage(query);
  const scans = governedScans(query);
  const described = plan.columns.map((column, i) => describe(column, outputsAt(query, i), lineage, runtime));
  const foreign = scans.find((s) => s.relation.connector !== scans[0]?.relation.connector);
  if (foreign !== undefined) {
    const hint = `\`${foreign.relation.name}\` lies in another database: ask in two queries`;
    const construct = 'a query over more than one connector';
    throw queryError('unsupported', { construct, hint }, plan.positionOfSource(foreign.id));
  }
  return {
    outputs: Object.freeze(described.map((d) => d.output)),
    partialColumns: Object.freeze(described.filter((d) => d.partial).map((d) => d.output.name)),
    objects: Object.freeze(
      [
        ...new Set([
          ...scans.map((s) => fullName('entities', s.relation.name)),
          ...plan.metrics.map((m) => fullName('metrics', m)),
          ...runtime.flatMap(objectsOf),
        ]),
      ].sort(),
    ),
    redactedColumns: Object.freeze([...new Set(scans.flatMap(redactedOf))].sort()),
    connector: scans[0]?.relation.connector ?? null,
  };
}

/** What the steps of a runtime relation touch. */
function objectsOf(runtime: GovernedRuntime): readonly string[] {
  switch (runtime.kind) {
    case 'retrieval':
      return [fullName('facets', runtime.relation.facet.name)];
    case 'traversal':
      return runtime.hops.flatMap((h) => h.objects);
    case 'hydration':
      return runtime.stores.map((s) => fullName('facets', s.facet.name));
    default: {
      const unknown: never = runtime;
      return unknown;
    }
  }
}

function governedScans(query: Query): readonly GovernedScan[] {
  return allQueries(query).flatMap((q) =>
    q.kind === 'select' ? leavesOf(q.from).filter((l) => l.kind === 'governed') : [],
  );
}

function redactedOf(scan: GovernedScan): readonly string[] {
  return scan.columns
    .filter((c) => c.masked !== 'none' && columnOf(scan.relation, c.name) !== null)
    .map((c) => `${scan.relation.name}.${c.name}`);
}

function describe(
  column: { name: string; type: OutputColumn['type'] },
  exprs: readonly Expr[],
  lineage: Lineage,
  runtime: readonly GovernedRuntime[],
) {
  const fields = exprs.flatMap((e) => lineage.runtimeColumnsUnder(e));
  const under = exprs.flatMap((e) => lineage.columnsUnder(e));
  const masks = under.map(({ scan, name }) =>
    scan.kind === 'governed' ? scan.columns.find((c) => c.name === name)?.masked : 'none',
  );
  const [only] = under;
  const source =
    only !== undefined && under.length === 1 && only.direct
      ? `osl.entities.${only.scan.relation.name}.${only.name}`
      : null;
  const output: OutputColumn = Object.freeze({
    name: column.name,
    type: column.type,
    source,
    redacted:
      masks.some((m) => m !== undefined && m !== 'none') || fields.some((f) => isMaskedField(f, runtime)),
  });
  return { output, partial: masks.includes('some') && exprs.some((e) => isAggregated(e, lineage)) };
}

/** Whether a column of passages is a metadata field that is masked for this caller, in some passage or in all. */
function isMaskedField({ source, name }: ColumnRef, runtime: readonly GovernedRuntime[]): boolean {
  const found = runtime.find((r) => r.relation.source === source);
  const passages = found?.kind === 'retrieval' ? found.store?.passages.query : undefined;
  if (passages?.kind !== 'select' || passages.from?.kind !== 'governed') return false;
  return passages.from.columns.some((c) => c.name === name && c.masked !== 'none');
}

/** Whether an aggregate or window call makes up the value, derived tables looked through. */
function isAggregated(expr: Expr, lineage: Lineage, seen: Set<string> = new Set()): boolean {
  return someExpr(expr, (e) => {
    if (e.kind === 'aggregate' || e.kind === 'window') return true;
    if (e.kind === 'scalar_query')
      return lineage.outputsOf(e.query).some((d) => isAggregated(d, lineage, seen));
    if (e.kind !== 'column' || lineage.scanOf(e.source) !== null) return false;
    const id = `${e.source} ${e.name}`;
    if (seen.has(id)) return false; // it was looked through, and is none
    seen.add(id);
    return lineage.definitionsOf(e).some((d) => isAggregated(d, lineage, seen));
  });
}
