import { type GovernedPlan, OPERATORS, queryError } from 'osl-compiler';

/** True if the query sends passages to an external model, which cannot be undone. */
export function sendsToModel(plan: GovernedPlan): boolean {
  return plan.runtime.length > 0 && egressOf(plan).length > 0;
}

/** The decoder operators and rerankers of a plan, each with the facet it reads. */
function egressOf(plan: GovernedPlan) {
  return plan.runtime.flatMap((r) => {
    if (r.kind !== 'retrieval') return [];
    const { operators, rerank, facet } = r.relation;
    const decodes = operators.some((o) => OPERATORS[o.operator].class === 'decoder');
    const from = { facet: facet.name, store: r.store };
    return [
      ...(decodes ? [{ ...from, to: 'a language model' as const }] : []),
      ...(rerank === null ? [] : [{ ...from, to: 'a reranker' as const }]),
    ];
  });
}

/** Checks, before anything is retrieved, that the policy allows sending passages to models. @throws QueryError E2101 */
export function requireModelAccess(plan: GovernedPlan): void {
  for (const { facet, store, to } of egressOf(plan)) {
    if (store !== null && !store.mayDecode) throw queryError('decodeDenied', { facet, to });
  }
}
