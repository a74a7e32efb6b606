import { randomUUID } from 'node:crypto';
import { emit, oidOf, QueryError, type Slot } from 'osl-compiler';
import { slotValues } from '../../../src/ask/data/runtime/slot-values.js';
import { explainPlan } from '../../../src/ask/index.js';
import type { Service } from '../../../src/service/service.js';

/** A statement as the gateway sends it to the database for one caller, or why it refuses it. */
export type GovernedSql =
  | {
      readonly kind: 'governed';
      readonly sql: string;
      /** Values of `$1`, `$2`, … in text format. */
      readonly values: readonly (string | null)[];
      /** Types of the values. */
      readonly types: readonly number[];
      /** Reads the caller's attributes from their entities, as each request does. Null if the policy has none. */
      readonly readAttributes: (() => Promise<unknown>) | null;
    }
  | { readonly kind: 'refused'; readonly reason: string };

/** Compiles raw SQL for the caller of a token, by the request path of the service. */
export async function governedStatement(service: Service, token: string, text: string): Promise<GovernedSql> {
  const call = {
    requestId: randomUUID(),
    surface: 'rest',
    credentials: { kind: 'bearer', token, address: '127.0.0.1' },
  } as const;
  const question = { ...call, body: { kind: 'sql', text }, parameterOids: [] } as const;
  try {
    const { plan, caller } = await explainPlan(service, question, null, new AbortController().signal);
    const { sql, slots } = emit(plan);
    const bound = slotValues(slots, new Map(), { parts: service, caller, parameters: [] });
    return {
      kind: 'governed',
      sql,
      values: bound.map(({ bytes }) => (bytes === null ? null : Buffer.from(bytes).toString('utf8'))),
      types: slots.map((slot: Slot) => oidOf(slot.type)),
      readAttributes: service.tableAttributes.needs(caller)
        ? async () => service.tableAttributes.complete(caller)
        : null,
    };
  } catch (error) {
    if (error instanceof QueryError) return { kind: 'refused', reason: `${error.code} ${error.message}` };
    throw error;
  }
}
