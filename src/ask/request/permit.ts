import type { GovernedPlan } from 'osl-compiler';
import type { AuditEntry, RecordForm } from '../../../policy/audit/index.js';
import type { Caller } from './caller.js';
import type { Meter } from './meters.js';

/**
 * What the one way learned of a request that it let in, for the next ones like it: of the same caller, under the same
 * versions, with the same plan but for its values. It says what their records say; it lets nobody in by itself.
 */
export interface Permit {
  readonly caller: Caller;
  /** Of lineage: what they run. */
  readonly plan: GovernedPlan | null;
  readonly decision: RecordForm;
  /** Of one that went well. */
  readonly ok: RecordForm;
  /** Of any other, but for what is its own. */
  readonly outcome: AuditEntry;
  /** Where they are counted. */
  readonly meter: Meter;
  /** Of the shape of what they ask. */
  readonly fingerprint: string | null;
}
