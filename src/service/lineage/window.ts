import { LRUCache } from 'lru-cache';
import {
  type AuditOutcome,
  type AuditRecord,
  leafHash,
  recordIn,
  type StoredFrame,
} from '../../../audit/index.js';
import type { PlanDescription } from './description.js';
import { PLAN_EVENT } from './description.js';

/** The position of an outcome in the audit log. `leaf` is its RFC 6962 leaf hash in hex. */
export interface AuditLeaf {
  readonly segment: number;
  readonly seq: number;
  readonly leaf: string;
}

type RunEnd = 'COMPLETE' | 'ABORT' | 'FAIL';

/** The runs of one statement in a window, for one manifest version, one policy version and one kind of end. */
export interface StatementRuns {
  readonly end: RunEnd;
  readonly plan: string;
  readonly manifest: string | null;
  readonly policy: string | null;
  /** The plan's description; null if it is missing, for example because its log segment has been deleted. */
  readonly description: PlanDescription | null;
  readonly objects: readonly string[];
  readonly form: string | null;
  readonly first: AuditLeaf;
  readonly last: AuditLeaf;
  readonly firstTime: string;
  readonly lastTime: string;
  readonly count: number;
  /** Number of runs by outcome: `ok`, `truncated`, `error`, … */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly rows: number;
  readonly surfaces: Readonly<Record<string, number>>;
}

type MutableRuns = { -readonly [K in keyof StatementRuns]: StatementRuns[K] } & {
  outcomes: Record<string, number>;
  surfaces: Record<string, number>;
};

/** Maximum number of statements per window; when it is reached, the window closes early. */
const MAX_STATEMENTS = 10_000;
/** Number of cached descriptions: more than `PlanRecorder` writes before it repeats one. */
const MAX_DESCRIPTIONS = 5_000;

const PLAN_MARK = Buffer.from('"plan":"');

/** Counts runs by statement. It uses the outcome records of the audit log, since every allowed decision has one. */
export class Windows {
  readonly #descriptions = new LRUCache<string, PlanDescription>({ max: MAX_DESCRIPTIONS });
  #runs = new Map<string, MutableRuns>();
  #startedAt: number | null = null;
  #lastOutcomeAt = 0;

  /** Time of the window's first outcome, in ms since the epoch; null if the window has no runs. */
  get startedAt(): number | null {
    return this.#startedAt;
  }

  get spanMs(): number {
    return this.#startedAt === null ? 0 : this.#lastOutcomeAt - this.#startedAt;
  }

  get full(): boolean {
    return this.#runs.size >= MAX_STATEMENTS;
  }

  /** @param countsRuns false to collect only descriptions, because the runs up to this position have been counted */
  add({ segment, seq, frame }: StoredFrame, countsRuns: boolean): void {
    // A cheap pre-filter, since most records have no plan.
    if (!frame.record.includes(PLAN_MARK)) return;
    const record = recordIn(frame);
    const { plan, kind, versions } = record;
    if (plan === undefined) return;
    const key = statementKey({ plan, manifest: versions?.manifest, policy: versions?.policy });
    if (kind === 'event' && record.action === PLAN_EVENT) this.#storeDescription(key, record);
    if (!countsRuns) return;
    if (kind !== 'outcome' || record.outcome === null) return;
    const leaf = leafHash(frame.leafInput).toString('hex');
    this.#countOutcome(key, plan, record, record.outcome, { segment, seq, leaf });
  }

  /** Returns the runs in the order of their first outcomes and begins a new window. */
  close(): readonly StatementRuns[] {
    const runs = [...this.#runs.values()];
    this.#runs = new Map();
    this.#startedAt = null;
    return runs;
  }

  /** Returns `runs` with the description if it was missing and has been read since. */
  withDescription(runs: StatementRuns): StatementRuns {
    return { ...runs, description: runs.description ?? this.#descriptions.peek(statementKey(runs)) ?? null };
  }

  #storeDescription(key: string, { detail }: AuditRecord): void {
    if (detail === undefined) return;
    this.#descriptions.set(key, JSON.parse(detail) as PlanDescription); // cast: written by `PlanRecorder`
  }

  #countOutcome(
    statement: string,
    plan: string,
    record: AuditRecord,
    outcome: AuditOutcome,
    leaf: AuditLeaf,
  ): void {
    const { versions, objects, form, ts, surface, rows, duration_us: us } = record;
    this.#lastOutcomeAt = Date.parse(ts);
    this.#startedAt ??= this.#lastOutcomeAt;
    const end = END_OF_OUTCOME[outcome];
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
      firstTime: new Date(this.#lastOutcomeAt - Math.round((us ?? 0) / 1_000)).toISOString(),
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

function statementKey(s: {
  readonly plan: string;
  readonly manifest: string | null | undefined;
  readonly policy: string | null | undefined;
}): string {
  return `${s.plan} ${s.manifest ?? ''} ${s.policy ?? ''}`;
}

/** OpenLineage event type for each outcome. `unknown`: no outcome was found after a restart. */
const END_OF_OUTCOME: Readonly<Record<AuditOutcome, RunEnd>> = {
  ok: 'COMPLETE',
  truncated: 'COMPLETE',
  cancelled: 'ABORT',
  error: 'FAIL',
  unknown: 'FAIL',
};
