import type { Access } from '../access/access.js';
import type { LiteralSlots } from '../bind/index.js';
import type { Catalog, FacetStore } from '../catalog/catalog.js';
import { OPERATORS } from '../catalog/operators.js';
import { assertNever } from '../errors/errors.js';
import { castTo, columnRef } from '../plan/nodes.js';
import type { Expr, InQuery, PlanOutput, Query, SourceId } from '../plan/plan.js';
import { mapQuery } from '../plan/query-tree.js';
import { isOfPassage, type OperatedRows, type Retrieval, type RuntimeRelation } from '../plan/runtime.js';
import { selectOf } from '../plan/select-nodes.js';
import { columnsOf } from '../plan/walk.js';
import type { GovernedPlan, GovernedRuntime, GovernedStore } from './governed-plan.js';
import type { JoinKeys } from './keys.js';
import { GovernedSlots } from './slots.js';
import { governedStore } from './store/governed-store.js';
import { fieldMask } from './visible-columns.js';

const NO_KEYS: ReadonlyMap<string, null> = new Map();

interface RuntimeCompilers {
  readonly compileHop: (text: string) => GovernedPlan;
  /** Governs a query of the caller that runs separately, before the statement. */
  readonly step: (query: Query) => GovernedPlan;
  /** Governs an uncorrelated query within the statement; values that it needs are added to the slots. */
  readonly query: (query: Query, slots: GovernedSlots) => Query;
}

/** Governs the runtime relations of a plan (those computed before the statement) and their steps. */
export function governRuntime(
  relations: readonly RuntimeRelation[],
  slots: GovernedSlots,
  literals: LiteralSlots,
  access: Access,
  catalog: Catalog,
  checked: JoinKeys['checked'],
  compilers: RuntimeCompilers,
): readonly GovernedRuntime[] {
  const storeOf = (relation: Retrieval, facet: FacetStore): GovernedStore | null =>
    retrievalStore(relation, facet, slots, literals, access, catalog, compilers);
  return Object.freeze(
    relations.map((relation): GovernedRuntime => {
      switch (relation.kind) {
        case 'retrieval':
          return Object.freeze({
            kind: 'retrieval',
            relation,
            store: storeOf(relation, legOf(relation)),
            lexical: relation.legs.mode === 'hybrid' ? storeOf(relation, lexicalLeg(relation)) : null,
            checkedKeys: checked.get(relation.source) ?? NO_KEYS,
            notices: noticesOfRetrieval(relation, catalog, access),
          });
        case 'traversal':
          return Object.freeze({
            kind: 'traversal',
            relation,
            start: relation.start === null ? null : compilers.step(relation.start),
            hops: Object.freeze(relation.hops.map((h) => compilers.compileHop(h.text))),
          });
        case 'hydration': {
          const { source, keys, facets, columns } = relation;
          const stores = facets.map((facet) => {
            const used = facet.derived.map((d) => d.name).filter((n) => columns.some((c) => c.name === n));
            const by = { kind: 'named', keys, derived: used } as const;
            const request = { source, facet, filters: [], metadata: [], by };
            return governedStore(request, catalog, access, slots, literals);
          });
          return Object.freeze({
            kind: 'hydration',
            relation,
            stores: Object.freeze(stores.filter((s) => s !== null)),
          });
        }
        case 'operated':
          return Object.freeze({ kind: 'operated', relation, rows: compilers.step(relation.rows) });
        default:
          return assertNever(relation);
      }
    }),
  );
}

/** Returns the store that passages are read from: the lexical one for a word search, else the facet's own. */
function legOf(relation: Retrieval): FacetStore {
  return relation.legs.mode === 'lexical' ? lexicalLeg(relation) : relation.facet;
}

function lexicalLeg({ facet }: Retrieval): FacetStore {
  return facet.lexicalLeg ?? facet;
}

function retrievalStore(
  relation: Retrieval,
  facet: FacetStore,
  slots: GovernedSlots,
  literals: LiteralSlots,
  access: Access,
  catalog: Catalog,
  compilers: RuntimeCompilers,
) {
  const { source, filters, operators, columns, legs, asked } = relation;
  const hybrid = legs.mode === 'hybrid';
  // The results of vector and word search are merged before paging, so neither search may skip rows.
  const page = { per: relation.page.per, skip: hybrid ? null : relation.page.skip };
  const vectors =
    relation.page.diversity !== null || operators.some((o) => OPERATORS[o.operator].class === 'encoder');
  const facetColumns = catalog.relations.get(facet.name)?.columns ?? [];
  const used = columns.map((c) => c.name);
  const metadata = used.filter(
    (name) => !isOfPassage(name, asked) && facetColumns.some((c) => c.name === name),
  );
  const weights = asked.includes('score_parts') && used.includes('score_parts');
  const own = new GovernedSlots(slots.finish());
  const semiJoins = relation.keyFilters
    .filter((f) => isHeldFirst(f, relation, catalog, access))
    .map((f): Expr => Object.freeze({ ...f, query: compilers.query(f.query, own) }));
  return governedStore(
    {
      source,
      facet,
      filters: [...filters, ...semiJoins],
      metadata,
      by: { kind: 'search', vectors, weights, page, named: hybrid },
    },
    catalog,
    access,
    own,
    literals,
  );
}

/** True if the field has no mask. Otherwise the store must not filter: the redacted-key check needs all passages. */
function isHeldFirst({ arg }: InQuery, { facet }: Retrieval, catalog: Catalog, access: Access): boolean {
  return arg.kind === 'column' && fieldMask(facet, arg.name, catalog, access) === 'none';
}

/** Returns notices about conditions applied after the best passages are taken. They do not depend on the data. */
function noticesOfRetrieval(relation: Retrieval, catalog: Catalog, access: Access): readonly string[] {
  const { filteredAfter, keyFilters, facet } = relation;
  const isLate = !keyFilters.every((f) => isHeldFirst(f, relation, catalog, access));
  if (filteredAfter === null && !isLate) return [];
  return [
    'other rows than the passages were filtered after the best passages were selected, so fewer may be returned than match: ' +
      `WHERE ${filteredAfter ?? 'retrieve'}.${facet.entityKey} IN (SELECT …), with an independent subquery, filters before`,
  ];
}

/** The rows to be processed by operators, by source, with the query that returns them. */
type OperatedQueries = ReadonlyMap<SourceId, { readonly relation: OperatedRows; readonly query: Query }>;

export function boundRows(runtime: readonly RuntimeRelation[]): OperatedQueries {
  return new Map(
    runtime.flatMap((r) => (r.kind === 'operated' ? [[r.source, { relation: r, query: r.rows }]] : [])),
  );
}

export function governedRows(runtime: readonly GovernedRuntime[]): OperatedQueries {
  return new Map(
    runtime.flatMap(({ kind, ...r }) =>
      kind === 'operated' && 'rows' in r
        ? [[r.relation.source, { relation: r.relation, query: r.rows.query }]]
        : [],
    ),
  );
}

/**
 * Returns `root` with the rows that operators process as a derived table, and each result replaced by the text that it
 * is computed from. Used to trace the origin of values; never executed.
 */
export function withRowsInPlace(root: Query, operated: OperatedQueries): Query {
  if (operated.size === 0) return root;
  return mapQuery(root, {
    item: (i) => {
      if (i.kind !== 'runtime') return i;
      const rows = operated.get(i.id);
      return rows === undefined ? i : Object.freeze({ kind: 'derived', id: i.id, query: derived(rows) });
    },
  });
}

function derived({ relation, query }: { readonly relation: OperatedRows; readonly query: Query }): Query {
  // Only this derived table has a negative id, so it differs from every other FROM item.
  const id = -relation.source;
  const results = relation.operators.length;
  const columns = columnsOf(query);
  const output = (position: number): PlanOutput['expr'] =>
    columnRef(id, `c${position}`, columns[position - 1]?.type ?? 'text');
  return selectOf({
    from: Object.freeze({ kind: 'derived', id, query }),
    outputs: [
      // The cast keeps the output from being treated as a column that is passed through unchanged.
      ...relation.operators.map((o) => ({
        name: o.column,
        expr: castTo(output(Number(o.of.slice(1)) - results), o.type),
      })),
      ...columns.map(({ name }, i) => ({ name, expr: output(i + 1) })),
    ],
  });
}
