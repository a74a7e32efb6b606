import type { AnswerParts, PlanNotes } from '../../ask/index.js';
import type { SpoolRoom } from '../../engine/index.js';
import type { RestParts } from '../rest/parts.js';

/** What is delivered of lineage, by endpoint. */
export interface DeliveryStats {
  /** Null before the thread that emits has said anything. */
  stats(): {
    readonly endpoints: Readonly<Record<string, Readonly<Record<DeliveryFigure, number | boolean>>>>;
    /** Audit records whose events are in the outbox. */
    readonly read: number;
    readonly restarts: number;
  } | null;
}

type DeliveryFigure = 'pending' | 'dead' | 'delivered' | 'failed' | 'dropped' | 'disabled';

/** What one port for REST, MCP and the metrics of the service needs. */
export interface HttpParts extends RestParts, Pick<AnswerParts, 'plans'> {
  readonly lineage: (PlanNotes & DeliveryStats) | null;
  readonly spool: Pick<SpoolRoom, 'stats'> | null;
}
