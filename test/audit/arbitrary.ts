import type { AuditEntry } from '../../audit/record.js';
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
export const anyEntry: fc.Arbitrary<AuditEntry> = fc
  .tuple(withoutLineage, fc.record({ plan: text, detail: text }, { requiredKeys: [] }))
  .map(([entry, lineage]): AuditEntry => ({ ...entry, ...lineage }));
