import { selectOf } from '../../plan/nodes.js';
import { type GovernedPlan, mint, type OutputColumn } from '../governed-plan.js';
import { verify } from '../verify/verify.js';
import type { StoreView } from './scan.js';

/** The governed plan of a SELECT on a store, of these parts. */
export function storePlan(
  { request, slots, access, catalog }: StoreView,
  parts: Parameters<typeof selectOf>[0],
): GovernedPlan {
  const query = selectOf(parts);
  const grounded = slots.finish();
  verify(query, grounded, null, catalog, access);
  const { facet } = request;
  return mint({
    form: 'retrieve',
    query,
    runtime: [],
    slots: grounded,
    clientOids: [],
    outputs: query.outputs.map(
      (o): OutputColumn => ({
        name: o.name,
        type: o.expr.type,
        form: null,
        source: null,
        redacted: false,
        redactable: [],
        passageKey: false,
        format: null,
      }),
    ),
    objects: [`osl.facets.${facet.name}`],
    redactedColumns: [],
    maskedColumns: [],
    passageFields: null,
    partialColumns: [],
    connector: facet.connector,
    accessSignature: access.signature,
    catalogVersion: catalog.version,
    policyVersion: access.policyVersion,
    grants: [],
  });
}
