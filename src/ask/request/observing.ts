import type { AuditDecision, AuditOutcome, AuditSurface } from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';
import { Meters, type RequestStage } from './meters.js';

/** A request that is over, as the operator is told of it: no literal, no row, no name that is not declared. */
export interface EndedRequest {
  readonly requestId: string;
  readonly surface: AuditSurface;
  readonly action: string;
  readonly form: string | null;
  readonly objects: readonly string[];
  readonly decision: AuditDecision;
  /** Null where it was refused. */
  readonly outcome: AuditOutcome | null;
  readonly code: string | null;
  readonly rows: number;
  /** Of the shape of what was asked: see `toldShape`; null where nothing was. */
  fingerprint(): string | null;
  /** µs, those that it went through; `total` is always there. */
  readonly stages: ReadonlyMap<RequestStage, number>;
  /** As W3C Trace Context has it, of who asks; null where nothing was said. */
  readonly traceparent: string | null;
}

/** Takes requests that are over, for traces. Must not throw. */
export interface TraceSink {
  ended(request: EndedRequest, endedAt: number): void;
}

/** What the operator is told of requests: figures of all, a line for each that took long, and traces. */
export class RequestObserver {
  readonly meters = new Meters();
  /** Questions that took longer than the setting says. */
  slow = 0;
  readonly #log: ServiceLog;
  readonly #slowUs: number;
  readonly #tracing: TraceSink | null;

  /** @param slowMs 0: none is told of */
  constructor(log: ServiceLog, slowMs: number, tracing: TraceSink | null = null) {
    this.#log = log;
    this.#slowUs = slowMs === 0 ? Number.POSITIVE_INFINITY : 1_000 * slowMs;
    this.#tracing = tracing;
  }

  get traces(): boolean {
    return this.#tracing !== null;
  }

  /** Whether more than figures is wanted of a request that took so long, in µs. */
  wants(us: number): boolean {
    return us >= this.#slowUs || this.#tracing !== null;
  }

  /** Tells of a request of which more is wanted. */
  tell(request: EndedRequest): void {
    this.#tracing?.ended(request, Date.now());
    if ((request.stages.get('total') ?? 0) < this.#slowUs) return;
    const fingerprint = request.fingerprint();
    if (fingerprint === null) return;
    this.slow += 1;
    const { requestId, surface, action, form, objects, outcome, code, rows } = request;
    this.#log.warn('slow question', {
      request_id: requestId,
      surface,
      action,
      form,
      fingerprint,
      objects,
      outcome: outcome ?? 'refused',
      ...(code !== null && { code }),
      rows,
      ...Object.fromEntries(
        [...request.stages].map(([stage, us]) => [`${stage}_ms`, Math.round(us) / 1_000]),
      ),
    });
  }
}
