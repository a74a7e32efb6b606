import type { GovernedRuntime } from 'osl-compiler';
import { jsonValue } from './constants.js';
import { citeOf, passageOf, typeNamed } from './passage.js';
import { step } from './step.js';
import type { RuntimeInput, RuntimeRows } from './types.js';

type HydrationRuntime = Extract<GovernedRuntime, { kind: 'hydration' }>;

/** Passages of one facet that hydration brings at most, over all keys. */
const EVIDENCE_ROWS = 1_000;

export async function hydrate(
  { relation, stores }: HydrationRuntime,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const byKey = new Map<string, unknown[]>();
  const redacted = new Set<string>();
  let truncated = false;
  for (const store of stores) {
    await input.service.content.ready(store.facet.name, store.version);
    const { rows } = await step(
      store.passages,
      new Map([['limit', String(EVIDENCE_ROWS + 1)]]),
      input,
      EVIDENCE_ROWS + 1,
    );
    truncated ||= rows.length > EVIDENCE_ROWS;
    for (const row of rows.slice(0, EVIDENCE_ROWS)) {
      const passage = passageOf(row, store);
      const key = row.get(store.facet.entityKey) ?? '';
      const evidence = {
        text: passage.text,
        cite: citeOf(passage, store),
        redacted_fields: passage.redactedFields,
      };
      byKey.set(key, [...(byKey.get(key) ?? []), evidence]);
      for (const field of passage.redactedFields) redacted.add(field);
    }
  }
  const type = typeNamed(relation.columns, 'key');
  const rows = [...byKey].map(([key, evidence]) => ({ key: jsonValue(key, type), evidence }));
  return { json: JSON.stringify(rows), truncated, redactedFields: [...redacted].sort(), errors: [] };
}
