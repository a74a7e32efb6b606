import type { AuditEntry, ReceiptDigests } from '../../audit/record.js';
import { fc } from '../support/fast-check.js';

const text = fc.string({ unit: 'binary' });
const maybe = fc.option(text);

const withoutLineage: fc.Arbitrary<AuditEntry> = fc.record({
  kind: fc.constantFrom('decision', 'outcome', 'event'),
  request_id: text,
  tenant: text,
  surface: fc.constantFrom('rest', 'wire', 'mcp', 'cli', 'system'),
  action: text,
  ts: text,
  subject: maybe,
  chain: fc.array(text),
  form: maybe,
  objects: fc.array(text),
  decision: fc.option(fc.constantFrom('allow', 'deny', 'error'), { nil: null }),
  code: maybe,
  versions: fc.option(fc.record({ manifest: maybe, policy: maybe }), { nil: null }),
  statement_hmac: maybe,
  rows: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }), { nil: null }),
  duration_us: fc.option(fc.maxSafeNat(), { nil: null }),
  outcome: fc.option(fc.constantFrom('ok', 'error', 'cancelled', 'truncated', 'unknown'), { nil: null }),
});

/** Any entry, in one of the four ways of what lineage adds. */
const withoutAnswer: fc.Arbitrary<AuditEntry> = fc
  .tuple(withoutLineage, fc.record({ plan: text, detail: text }, { requiredKeys: [] }))
  .map(([entry, lineage]): AuditEntry => ({ ...entry, ...lineage }));

const receipt: fc.Arbitrary<ReceiptDigests> = fc.record({
  as_of: maybe,
  masked: fc.array(text),
  masked_omitted: fc.nat(),
  order: fc.constantFrom('sequence', 'multiset'),
  question: text,
  rows: text,
  truncated: fc.boolean(),
});

/** Any entry, with and without a receipt and the standby that answered. */
export const anyEntry: fc.Arbitrary<AuditEntry> = fc
  .tuple(
    withoutAnswer,
    fc.record({ receipt, standby: fc.record({ as_of: text, name: text }) }, { requiredKeys: [] }),
  )
  .map(([entry, answer]): AuditEntry => ({ ...entry, ...answer }));
