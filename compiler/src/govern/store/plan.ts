import { selectOf } from '../../plan/nodes.js';
import { type GovernedPlan, mint, type OutputColumn } from '../governed-plan.js';
import type { StoreView } from './scan.js';

const NO_ROLLUPS: ReadonlySet<string> = new Set();

export function storePlan(
  { request, slots, access, catalog }: StoreView,
  parts: Parameters<typeof selectOf>[0],
): GovernedPlan {
  const query = selectOf(parts);
  const grounded = slots.finish();
  const { facet } = request;
  const fields = {
    form: 'retrieve' as const,
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
    grants: [],
  };
  return mint(fields, { catalog, access, joins: null, usable: NO_ROLLUPS });
}
