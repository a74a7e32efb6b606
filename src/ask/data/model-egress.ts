import { type GovernedPlan, OPERATORS, queryError } from 'osl-compiler';

/** True if answering sends passages to a model elsewhere, which cannot be undone. */
export function asksModel(plan: GovernedPlan): boolean {
  return plan.runtime.length > 0 && egressOf(plan).length > 0;
}

/** The parts of a plan that send passages out, decoder operators and rerankers, each with the facet that it reads. */
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

/**
 * Refuses a question to a model elsewhere where policy does not let passages leave, before anything is retrieved. That
 * there is no model the compiler has said before: it is no secret, and true for everybody.
 *
 * @throws QueryError E2101
 */
export function mayAskModel(plan: GovernedPlan): void {
  for (const { facet, store, to } of egressOf(plan)) {
    if (store !== null && !store.mayDecode) throw queryError('decodeDenied', { facet, to });
  }
}
