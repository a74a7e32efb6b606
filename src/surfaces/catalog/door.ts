import type { ParsedText } from 'osl-compiler';
import type { BoundValue } from '../../engine/index.js';
import type { DescribedColumn } from '../../engine/protocol/row-description.js';
import type { StatementLane } from './classify.js';
import type { CatalogModel } from './model.js';
import type { BackendReply } from './reply.js';

/** Caller of a catalog statement. */
export interface CatalogCaller {
  /** Login name. */
  readonly user: string;
  readonly session: CatalogSettings;
}

/** Session state that a catalog statement reads. */
export interface CatalogSettings {
  /**
   * JSON for `current_setting`, `pg_settings`, `pg_backend_pid` and `pg_stat_activity`; `hardening.ts` documents its
   * shape.
   */
  readonly told: string;
  /** Settings applied in the engine itself: input and output formats. */
  readonly inForce: readonly (readonly [name: string, value: string])[];
}

/** Parameters and columns of a statement. */
export interface StatementDescription {
  readonly parameterTypes: readonly number[];
  readonly columns: readonly DescribedColumn[] | null;
}

/** Runs catalog statements, in this process or in one that serves several workers. */
export interface CatalogDoor {
  /** Maximum rows per answer. */
  readonly maxRows: number;
  /** Classifies a text: catalog, data, mixed or writing. */
  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): StatementLane | Promise<StatementLane>;
  /** Cached description of a statement; null if it must be described by an engine. */
  knows(model: CatalogModel, text: string, parameterTypes: readonly number[]): StatementDescription | null;
  /**
   * Runs `work` with the engine of `model`, after earlier statements of the same subject.
   *
   * @throws CatalogFault if no engine is free in time
   */
  use<T>(
    model: CatalogModel,
    subject: string,
    signal: AbortSignal | null,
    work: (engine: CatalogEngine) => Promise<T>,
  ): Promise<T>;
}

/** Engine of one access signature, while on loan. */
export interface CatalogEngine {
  /** @throws CatalogFault */
  describe(
    caller: CatalogCaller,
    text: string,
    parameterTypes: readonly number[],
    signal: AbortSignal | null,
  ): Promise<StatementDescription>;
  /** Runs a statement for at most `maxRows` rows; `tag` is null if there were more. @throws CatalogFault */
  query(
    caller: CatalogCaller,
    text: string,
    parameterTypes: readonly number[],
    values: readonly BoundValue[],
    formats: readonly (0 | 1)[],
    maxRows: number,
    signal: AbortSignal | null,
  ): Promise<BackendReply>;
}
