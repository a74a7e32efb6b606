import type { ErrorParameters, GovernedPlan, GovernedStore } from 'osl-compiler';
import type {
  AnswerMemory,
  BoundValue,
  EngineStatus,
  GovernedEngine,
  MemoryShare,
} from '../../engine/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { RightsSigner } from '../../model/row-security/index.js';
import type { LongTextParser } from '../parsing/index.js';
import type { Marks } from '../parsing/marks.js';
import type { ApprovalRequestParts } from '../request/approval-requests.js';
import type { BreakGlassParts } from '../request/break-glass.js';
import type { Caller } from '../request/caller.js';
import type { SealedValue } from '../request/sealed.js';
import type { AnswerCache, DataEpochs } from './answer-cache.js';
import type { ContentPlane } from './content-plane.js';
import type { IndexesRead, ModelUsage } from './model-usage.js';
import type { OverlapStore } from './overlap/overlap-thread.js';
import type { PlanCache } from './plan-cache.js';
import type { StandbyUse } from './query-answer.js';
import type { PlannedQuestion, Snapshots } from './question.js';
import type { RunningQueries } from './running-queries.js';

/** Limits for a single result. */
export interface Caps {
  readonly rows: number;
  readonly bytes: number;
  /** Maximum number of `evidence` passages per facet in one answer, over all keys. */
  readonly evidence: number;
  readonly timeoutMs: number;
}

/** Dependencies for planning. */
export interface PlanningParts {
  readonly plans: PlanCache;
  readonly parsing: LongTextParser;
  readonly marks: Marks;
  readonly content: Pick<ContentPlane, 'hasDecoder'>;
  readonly rollups: Rollups;
}

/** The rights that a plan is compiled for, and the subject, since compilations for different subjects take turns. */
export interface PlanningCaller extends Pick<Caller, 'access' | 'manifest'> {
  readonly identity: { readonly subject: string };
}

/** The rollups that may be used now, with their build times. */
export interface Rollups {
  usable(manifest: Manifest): { readonly builtAt: ReadonlyMap<string, number>; readonly key: string };
}

/** Decides whether a caller may see many passages of a store or only a few. */
export interface PermittedCounts {
  /** @param countPlan the plan that counts permitted passages, up to the limit in slot `limit` */
  areMany(countPlan: GovernedPlan, epoch: string, input: RuntimeInput): Promise<boolean>;
}

export interface WordCounts {
  readonly documents: number;
  /** For each word of the query, by id, the number of passages that contain it. */
  readonly frequencies: ReadonlyMap<number, number>;
  /** The `pg_snapshot` in which the passages were counted; null if unknown. */
  readonly snapshot: string | null;
  readonly key: string;
  readonly isCached: boolean;
}

export interface WordCounter {
  count(
    counts: NonNullable<GovernedStore['counts']>,
    terms: readonly number[],
    epoch: string,
    input: RuntimeInput,
  ): Promise<WordCounts>;
  /**
   * Checks that counts from `count` are still valid after the search that used them, and caches new ones.
   *
   * @param foundSnapshot the `pg_snapshot` of the passages found; null if unknown
   * @returns false if cached counts may be out of date; they are then dropped
   */
  confirm(
    facet: string,
    counts: NonNullable<GovernedStore['counts']>,
    counted: WordCounts,
    foundSnapshot: string | null,
    input: RuntimeInput,
  ): boolean;
}

/** Inputs of a step, such as a search, that runs before the SQL statement. */
export interface StepInput {
  readonly parts: RunningParts;
  readonly caller: Caller;
  readonly plan: GovernedPlan;
  readonly parameters: readonly BoundValue[];
  readonly signal: AbortSignal | null;
  readonly snapshots: Snapshots | null;
  readonly standby: StandbyUse;
  /** True if truncation must be an error, because the client cannot be notified of it. */
  readonly whole: boolean;
  /** Memory budget charged for the rows of steps until it is released. */
  readonly memory: MemoryShare;
}

/** Inputs of the runtime relations of a statement, whose rows the gateway computes before it runs the statement. */
export interface RuntimeInput extends StepInput {
  /** The deadline on the clock of `performance.now()`. */
  readonly until: number;
  readonly usage: ModelUsage;
  readonly indexes: IndexesRead;
}

/** Keys for `hash` masks, per tenant and key domain, as HMAC-SHA-256 pads (RFC 2104). */
export interface MaskKeys {
  /** Returns a pad of 64 bytes in hex. */
  pad(pad: 'inner' | 'outer', domain: string): string;
}

/** Dependencies for running plans. */
export interface RunningParts {
  readonly engines: ReadonlyMap<string, EngineStatus>;
  readonly runners: SealedValue<ReadonlyMap<string, GovernedEngine>>;
  /** Connector for plans without relations, such as `SELECT 1`. */
  readonly defaultConnector: string;
  readonly maskKeys: MaskKeys;
  readonly controls: BreakGlassParts['controls'];
  /** Returns the signer of the rights that are attached to statements on a connector with row security. */
  rowRights(connector: string): RightsSigner;
  readonly content: ContentPlane;
  readonly permitted: PermittedCounts;
  readonly words: WordCounter;
  readonly answers: AnswerCache;
  readonly memory: AnswerMemory;
  readonly epochs: DataEpochs;
  readonly caps: Caps;
  readonly runningQueries: RunningQueries;
}

/** Dependencies for running queries. */
export interface AnswerParts extends BreakGlassParts, ApprovalRequestParts, PlanningParts, RunningParts {
  readonly content: ContentPlane;
  readonly shadow: ShadowHolder;
  readonly overlaps: OverlapStore;
}

/** Holds the shadow policy that is being compared with the served one; null if there is none. */
export interface ShadowHolder {
  readonly running: ShadowWatch | null;
}

/** Observes data questions after their decisions. Its methods neither throw nor wait, nor affect the question. */
export interface ShadowWatch {
  /** @param outcome the served plan, or the error of a refusal */
  onDecision(caller: Caller, question: PlannedQuestion, outcome: unknown): void;
  /** Called when the fast path sends a question of a known shape, without planning it, to the database. */
  onFastPath(question: FastPathQuestion): void;
}

/** A question of a known shape: its route with the plan, and its text as UTF-8 in `bytes`, from `start` up to `end`. */
export interface FastPathQuestion {
  readonly caller: Caller;
  readonly route: {
    readonly plan: GovernedPlan;
    readonly kind: Exclude<PlannedQuestion['body']['kind'], 'metrics'>;
    readonly parameterOids: readonly number[];
  };
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** A cap that was hit, with advice for the client. */
export type Clip = ErrorParameters<'stepCap'>;

/** The rows of a runtime relation, with the truncation, redactions and errors to report to the client. */
export interface RuntimeRows {
  readonly json: string;
  /** Values of a column that the statement joins on, in text format. */
  readonly keys: (column: string) => readonly (string | null)[];
  /** The cap that truncated the rows; null if they are complete. */
  readonly clip: Clip | null;
  readonly redacted: ReadonlySet<string>;
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
}

export const NO_ROWS: RuntimeRows = Object.freeze({
  json: '[]',
  keys: () => [],
  clip: null,
  redacted: new Set<string>(),
  errors: [],
});
