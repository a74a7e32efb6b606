import { LRUCache } from 'lru-cache';
import {
  type AuditOutcome,
  type AuditRecord,
  leafHash,
  recordIn,
  type StoredFrame,
} from '../../../audit/index.js';
import type { PlanDescription } from './description.js';
import { PLAN_EVENT } from './recorder.js';

/** Where an outcome stands in the audit log: `leaf` is its RFC 6962 leaf hash, in hex. */
export interface AuditLeaf {
  readonly segment: number;
  readonly seq: number;
  readonly leaf: string;
}

/** How runs ended, as OpenLineage has it: `COMPLETE`, cancelled by their asker, or failed. */
type RunEnd = 'COMPLETE' | 'ABORT' | 'FAIL';

/** All runs of one statement under the same versions that ended in the same way within a window. */
export interface Runs {
  readonly end: RunEnd;
  /** See `planFingerprint`. */
  readonly plan: string;
  readonly manifest: string | null;
  readonly policy: string | null;
  /** Null where the log that described it is gone. */
  readonly description: PlanDescription | null;
  readonly objects: readonly string[];
  readonly form: string | null;
  readonly first: AuditLeaf;
  readonly last: AuditLeaf;
  /** RFC 3339. */
  readonly firstTime: string;
  readonly lastTime: string;
  readonly count: number;
  /** By the log's words: `ok`, `truncated`, `error`, … */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly rows: number;
  readonly surfaces: Readonly<Record<string, number>>;
}

type MutableRuns = { -readonly [K in keyof Runs]: Runs[K] } & {
  outcomes: Record<string, number>;
  surfaces: Record<string, number>;
};

/** Statements in one window; more end it early. */
const MOST_STATEMENTS = 10_000;
/** Descriptions kept: more than `PlanRecorder` writes before it writes one again. */
const MOST_DESCRIPTIONS = 5_000;

const PLAN_MARK = Buffer.from('"plan":"');

/**
 * Counts runs by statement, as the frames of the audit log tell of them, in their order. A run is told of once it has
 * ended: every decision to answer has an outcome in the end, which says all that is told of it.
 */
export class Windows {
  readonly #descriptions = new LRUCache<string, PlanDescription>({ max: MOST_DESCRIPTIONS });
  #runs = new Map<string, MutableRuns>();
  #startedAt: number | null = null;
  #lastAt = 0;

  /** ms since 1970, of its first run; null while there is none. */
  get startedAt(): number | null {
    return this.#startedAt;
  }

  /** ms between its first run and its last. */
  get spanMs(): number {
    return this.#startedAt === null ? 0 : this.#lastAt - this.#startedAt;
  }

  get full(): boolean {
    return this.#runs.size >= MOST_STATEMENTS;
  }

  /** @param counts whether runs count, or only descriptions are wanted, since the runs were told of before */
  add({ segment, seq, frame }: StoredFrame, counts: boolean): void {
    // A cheap look at the bytes first: most records of other services' logs say nothing of plans.
    if (!frame.record.includes(PLAN_MARK)) return;
    const record = recordIn(frame);
    const { plan, kind, versions } = record;
    if (plan === undefined) return;
    const key = `${plan} ${versions?.manifest ?? ''} ${versions?.policy ?? ''}`;
    if (kind === 'event' && record.action === PLAN_EVENT) this.#describe(key, record);
    if (!counts) return;
    if (kind !== 'outcome' || record.outcome === null) return;
    const leaf = leafHash(frame.leafInput).toString('hex');
    this.#ended(key, plan, record, record.outcome, { segment, seq, leaf });
  }

  /** What there is, in the order of first runs; a new window begins. */
  close(): readonly Runs[] {
    const runs = [...this.#runs.values()];
    this.#runs = new Map();
    this.#startedAt = null;
    return runs;
  }

  #describe(key: string, { detail }: AuditRecord): void {
    if (detail === undefined) return;
    this.#descriptions.set(key, JSON.parse(detail) as PlanDescription); // as `PlanRecorder` wrote it
  }

  #ended(statement: string, plan: string, record: AuditRecord, outcome: AuditOutcome, leaf: AuditLeaf): void {
    const { versions, objects, form, ts, surface, rows, duration_us: us } = record;
    this.#lastAt = Date.parse(ts);
    this.#startedAt ??= this.#lastAt;
    const end = ENDS[outcome];
    const key = `${end} ${statement}`;
    const runs = this.#runs.get(key) ?? {
      end,
      plan,
      manifest: versions?.manifest ?? null,
      policy: versions?.policy ?? null,
      description: this.#descriptions.peek(statement) ?? null,
      objects,
      form,
      first: leaf,
      last: leaf,
      firstTime: new Date(this.#lastAt - Math.round((us ?? 0) / 1_000)).toISOString(),
      lastTime: ts,
      count: 0,
      outcomes: {},
      rows: 0,
      surfaces: {},
    };
    runs.count += 1;
    runs.last = leaf;
    runs.lastTime = ts;
    runs.surfaces[surface] = (runs.surfaces[surface] ?? 0) + 1;
    runs.outcomes[outcome] = (runs.outcomes[outcome] ?? 0) + 1;
    runs.rows += rows ?? 0;
    this.#runs.set(key, runs);
  }
}

/** What a restart found without an end has failed, as far as anybody knows. */
const ENDS: Readonly<Record<AuditOutcome, RunEnd>> = {
  ok: 'COMPLETE',
  truncated: 'COMPLETE',
  cancelled: 'ABORT',
  error: 'FAIL',
  unknown: 'FAIL',
};
