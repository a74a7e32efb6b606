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

/** Limits of one result. */
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

/** Dependencies of planning. */
export interface PlanningParts {
  readonly plans: PlanCache;
  readonly parsing: LongTextParser;
  readonly marks: Marks;
  readonly content: Pick<ContentPlane, 'hasDecoder'>;
  readonly rollups: Rollups;
}

/** Rollups that questions may be answered from now, with their build times. */
export interface Rollups {
  usable(manifest: Manifest): { readonly builtAt: ReadonlyMap<string, number>; readonly key: string };
}

/** Decides if a caller may see many passages of a store or few. */
export interface PermittedCounts {
  /** @param some counts permitted passages up to slot `limit` */
  areMany(some: GovernedPlan, epoch: string, input: RuntimeInput): Promise<boolean>;
}

/** Counts over the passages that a caller may see. */
export interface CountedWords {
  readonly documents: number;
  /** Number of those passages that hold each word; includes all words of the query. */
  readonly frequencies: ReadonlyMap<number, number>;
  /** State of the data that was counted; null if it has no name. */
  readonly snapshot: string | null;
  /** Identifies the permitted set that was counted. */
  readonly key: string;
  /** True if it was counted for an earlier question. */
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
   * True if the counts still hold for the passages that were found with them.
   *
   * @param seen the state of the data that the passages come from; null if there is none
   * @returns false for counts of an earlier question if the data may have changed since: they are dropped
   */
  holds(
    facet: string,
    counts: NonNullable<GovernedStore['counts']>,
    found: CountedWords,
    seen: string | null,
    input: RuntimeInput,
  ): boolean;
}

/** Inputs of a step, in addition to its plan. */
export interface StepInput {
  readonly parts: RunningParts;
  readonly caller: Caller;
  readonly plan: GovernedPlan;
  /** Values of the caller's `$1 …`. */
  readonly parameters: readonly BoundValue[];
  readonly signal: AbortSignal | null;
  readonly snapshots: Snapshots | null;
  /** True if the result must be complete, because its reader cannot be told that rows are missing. */
  readonly whole: boolean;
  /** Memory that the rows of its steps hold, until the consumer releases them. */
  readonly memory: MemoryShare;
}

/** Inputs of the runtime relations of one statement, in addition to their plans. */
export interface RuntimeInput extends StepInput {
  /** Deadline of the question on the clock of `performance.now()`. */
  readonly until: number;
  readonly spending: ModelUsage;
  readonly indexes: IndexesRead;
}

/** Dependencies of running plans. */
export interface RunningParts {
  /** By connector name. */
  readonly engines: ReadonlyMap<string, EngineStatus>;
  /** Engines that run plans, by connector name. */
  readonly runners: SealedValue<ReadonlyMap<string, GovernedEngine>>;
  /** Connector for plans that read no relation, such as `SELECT 1`. */
  readonly defaultConnector: string;
  readonly maskKeys: MaskKeys;
  readonly means: GlassParts['means'];
  /** Signs the rights that statements for a connector carry if row security is enabled there. */
  rowRights(connector: string): RightsSigner;
  readonly content: ContentPlane;
  readonly permitted: PermittedCounts;
  readonly words: WordCounter;
  readonly answers: AnswerCache;
  readonly memory: AnswerMemory;
  readonly epochs: DataEpochs;
  readonly caps: Caps;
  /** Running queries, to be ended when the rights that they run under are gone. */
  readonly underway: RunningQueries;
}

/** Dependencies of answering questions about data. */
export interface AnswerParts extends GlassParts, PlanningParts, RunningParts {
  readonly content: ContentPlane;
}
