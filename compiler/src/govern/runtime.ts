import type { Access } from '../access.js';
import type { LiteralSlots } from '../bind/index.js';
import type { Catalog } from '../catalog.js';
import { assertNever } from '../errors.js';
import { OPERATORS } from '../operators.js';
import type { Retrieval, RuntimeRelation } from '../runtime.js';
import type { GovernedPlan, GovernedRuntime } from './governed-plan.js';
import type { JoinKeys } from './keys.js';
import type { GovernedSlots } from './slots.js';
import { governedStore } from './store/governed-store.js';

const NO_KEYS: ReadonlyMap<string, null> = new Map();

/** The runtime relations of a plan, each with the governed plans of its steps. */
export function governRuntime(
  relations: readonly RuntimeRelation[],
  slots: GovernedSlots,
  literals: LiteralSlots,
  access: Access,
  catalog: Catalog,
  checked: JoinKeys['checked'],
  compileHop: (text: string) => GovernedPlan,
): readonly GovernedRuntime[] {
  return Object.freeze(
    relations.map((relation): GovernedRuntime => {
      switch (relation.kind) {
        case 'retrieval':
          return Object.freeze({
            kind: 'retrieval',
            relation,
            store: retrievalStore(relation, slots, literals, access, catalog),
            checkedKeys: checked.get(relation.source) ?? NO_KEYS,
          });
        case 'traversal':
          return Object.freeze({
            kind: 'traversal',
            relation,
            hops: Object.freeze(relation.hops.map((h) => compileHop(h.text))),
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
        default:
          return assertNever(relation);
      }
    }),
  );
}

function retrievalStore(
  relation: Retrieval,
  slots: GovernedSlots,
  literals: LiteralSlots,
  access: Access,
  catalog: Catalog,
) {
  const { source, facet, filters, operators, columns } = relation;
  const vectors = operators.some((o) => OPERATORS[o.operator].class === 'encoder');
  const facetColumns = catalog.relations.get(facet.name)?.columns ?? [];
  const metadata = columns.map((c) => c.name).filter((name) => facetColumns.some((c) => c.name === name));
  return governedStore(
    { source, facet, filters, metadata, by: { kind: 'search', vectors } },
    catalog,
    access,
    slots,
    literals,
  );
}
