import type { GovernedPlan, GovernedStore } from 'osl-compiler';
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
import type { GlassParts } from '../request/break-glass.js';
import type { Caller } from '../request/caller.js';
import type { SealedValue } from '../request/sealed.js';
import type { AnswerCache, DataEpochs } from './answer-cache.js';
import type { ContentPlane } from './content-plane.js';
import type { MaskKeys } from './mask-keys.js';
import type { IndexesRead, ModelUsage } from './model-usage.js';
import type { PlanCache } from './plan-cache.js';
import type { Snapshots } from './question.js';
import type { RunningQueries } from './running-queries.js';

/** What one result may cost. */
export interface Caps {
  /** Rows of one answer. */
  readonly rows: number;
  /** Bytes of one answer's rows. */
  readonly bytes: number;
  /** Passages of one facet that one Joint question brings, over all its keys. */
  readonly evidence: number;
  /** From the question to the last row. */
  readonly timeoutMs: number;
}

/** What makes plans of texts. */
export interface PlanningParts {
  readonly plans: PlanCache;
  readonly parsing: LongTextParser;
  readonly marks: Marks;
  readonly content: Pick<ContentPlane, 'hasDecoder'>;
  readonly rollups: Rollups;
}

/** Which rollups questions may be answered from now, and when they were built. */
export interface Rollups {
  usable(manifest: Manifest): { readonly builtAt: ReadonlyMap<string, number>; readonly key: string };
}

/** Whether a caller may see many passages of a store or few. */
export interface PermittedCounts {
  /** @param some counts permitted passages up to slot `limit` */
  areMany(some: GovernedPlan, epoch: string, input: RuntimeInput): Promise<boolean>;
}

/** Counts over the passages that a caller may see. */
export interface CountedWords {
  readonly documents: number;
  /** In how many of them each word stands, those of the query among them. */
  readonly frequencies: ReadonlyMap<number, number>;
  /** The state of the data that was counted; null where it has no name. */
  readonly snapshot: string | null;
  /** Which permitted set it was. */
  readonly key: string;
  /** Whether it was counted for an earlier question. */
  readonly isKept: boolean;
}

/** Counts the words of queries over permitted passages. */
export interface WordCounter {
  of(
    counts: NonNullable<GovernedStore['counts']>,
    terms: readonly number[],
    epoch: string,
    input: RuntimeInput,
  ): Promise<CountedWords>;
  /**
   * Whether counts hold for passages that were found by them.
   *
   * @param seen the state of the data that the passages are of; null where there are none
   * @returns false of counts for an earlier question where the data may have changed since: they are forgotten
   */
  holds(
    facet: string,
    counts: NonNullable<GovernedStore['counts']>,
    found: CountedWords,
    seen: string | null,
    input: RuntimeInput,
  ): boolean;
}

/** What a step needs beside its plan. */
export interface StepInput {
  readonly parts: RunningParts;
  readonly caller: Caller;
  readonly plan: GovernedPlan;
  /** Values of the caller's `$1 …`. */
  readonly parameters: readonly BoundValue[];
  readonly signal: AbortSignal | null;
  readonly snapshots: Snapshots | null;
  /** Nobody could be told that rows are missing. */
  readonly whole: boolean;
  /** The memory that the rows of its steps hold, until whoever asked has no more use for them. */
  readonly memory: MemoryShare;
}

/** What one statement's runtime relations need beside their plans. */
export interface RuntimeInput extends StepInput {
  /** When the question's time is up, on the clock of `performance.now()`. */
  readonly until: number;
  readonly spending: ModelUsage;
  readonly indexes: IndexesRead;
}

/** What runs plans. */
export interface RunningParts {
  /** By connector name. */
  readonly engines: ReadonlyMap<string, EngineStatus>;
  /** What runs plans, by connector name. */
  readonly runners: SealedValue<ReadonlyMap<string, GovernedEngine>>;
  /** Runs what reads no relation, such as `SELECT 1`. */
  readonly defaultConnector: string;
  readonly maskKeys: MaskKeys;
  readonly means: GlassParts['means'];
  /** Signs what statements for a connector carry where row security stands behind it. */
  rowRights(connector: string): RightsSigner;
  readonly content: ContentPlane;
  readonly permitted: PermittedCounts;
  readonly words: WordCounter;
  readonly answers: AnswerCache;
  readonly memory: AnswerMemory;
  readonly epochs: DataEpochs;
  readonly caps: Caps;
  /** What runs, to be ended when the rights that it runs under are gone. */
  readonly underway: RunningQueries;
}

/** What answers questions about data. */
export interface AnswerParts extends GlassParts, PlanningParts, RunningParts {
  readonly content: ContentPlane;
}
