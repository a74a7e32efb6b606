import { type GovernedPlan, OPERATORS, queryError } from 'osl-compiler';

/** Whether answering sends passages to a language model, which cannot be undone. */
export function asksModel(plan: GovernedPlan): boolean {
  return plan.runtime.length > 0 && decodersOf(plan).length > 0;
}

/** The decoder operators of a plan, each with what it reads: nothing where the caller has no passage. */
function decodersOf(plan: GovernedPlan) {
  return plan.runtime.flatMap((r) =>
    r.kind === 'retrieval'
      ? r.relation.operators
          .filter((o) => OPERATORS[o.operator].class === 'decoder')
          .map(() => ({ facet: r.relation.facet.name, store: r.store }))
      : [],
  );
}

/**
 * Refuses a question to a language model where policy does not let passages leave, before anything is retrieved. That
 * there is no model the compiler has said before: it is no secret, and true for everybody.
 *
 * @throws QueryError E2101
 */
export function mayAskModel(plan: GovernedPlan): void {
  for (const { facet, store } of decodersOf(plan)) {
    if (store !== null && !store.mayDecode) throw queryError('decodeDenied', { facet });
  }
}
