import { type Access, type RelationAccess, rowAccess, sameRows } from '../../access/access.js';
import { columnsFor, type LiteralSlots } from '../../bind/index.js';
import type { Catalog, Relation } from '../../catalog/catalog.js';
import { servedAccess, versionDue } from '../facet-version.js';
import type { GovernedStore } from '../governed-plan.js';
import { columnRule } from '../mask.js';
import { GovernedSlots } from '../slots.js';
import { passageTable } from './columns.js';
import { countPlans } from './counts.js';
import { derivedPlan } from './derived.js';
import { commonWordsPlan, namedPlan, nearestPlans, passagePlan } from './passages.js';
import type { StoreRequest, StoreView } from './scan.js';

/**
 * The governed plans that read one facet: the version that this caller is due, its row filter, and only passages
 * whose entity the caller may see. Null where there is no grant, or no version fits exactly.
 */
export function governedStore(
  request: StoreRequest,
  catalog: Catalog,
  access: Access,
  planSlots: GovernedSlots,
  literals: LiteralSlots,
): GovernedStore | null {
  const { facet } = request;
  const relation = catalog.relations.get(facet.name);
  const entity = catalog.relations.get(facet.entity);
  const allowed = rowAccess(facet.name, access);
  const version = versionDue(facet, catalog, access);
  if (relation === undefined || entity === undefined || allowed === undefined || version === null)
    return null;
  const shown = shownFields(relation, allowed);
  const served = servedAccess(allowed, version);
  const view: StoreView = {
    request,
    store: passageTable(relation, facet, version),
    allowed: served,
    shown,
    entity,
    access,
    catalog,
    slots: new GovernedSlots(planSlots.finish()),
    literals,
  };
  const search = request.by.kind === 'search';
  const lexical = search && facet.lane === 'lexical';
  return Object.freeze({
    facet,
    version: version.name,
    fields: Object.freeze({
      shown,
      masked: new Set(shown.filter((name) => columnRule(relation, name, served).masked === 'all')),
    }),
    redacts: version.searched || version.redacts.size > 0,
    mayDecode: sameRows(
      allowed.grants.filter((g) => g.decode === true),
      allowed.grants,
    ),
    passages: passagePlan(view),
    named: request.by.kind === 'search' && request.by.named && !lexical ? namedPlan(view) : null,
    nearest: search && !lexical ? nearestPlans(view, version) : null,
    derived: derivedPlan(view, version),
    counts: lexical ? countPlans(view, version) : null,
    commonWords: lexical ? commonWordsPlan(view) : null,
  });
}

function shownFields(relation: Relation, allowed: RelationAccess): readonly string[] {
  return Object.freeze(
    [...columnsFor(relation, allowed).values()].filter((c) => !c.denied).map((c) => c.name),
  );
}
