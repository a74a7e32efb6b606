import type { AnswerParts, PlanNotes } from '../../ask/index.js';
import type { SpoolRoom } from '../../engine/index.js';
import type { RestParts } from '../rest/parts.js';

/** Lineage delivery figures by endpoint. */
export interface DeliveryStats {
  /** Null before the lineage thread has reported. */
  stats(): {
    readonly endpoints: Readonly<Record<string, Readonly<Record<DeliveryFigure, number | boolean>>>>;
    /** Audit records whose events are in the outbox. */
    readonly read: number;
    readonly restarts: number;
  } | null;
}

type DeliveryFigure = 'pending' | 'dead' | 'delivered' | 'failed' | 'dropped' | 'disabled';

/** Services of one port for REST, MCP and metrics. */
export interface HttpParts extends RestParts, Pick<AnswerParts, 'plans'> {
  readonly lineage: (PlanNotes & DeliveryStats) | null;
  readonly spool: Pick<SpoolRoom, 'stats'> | null;
}
