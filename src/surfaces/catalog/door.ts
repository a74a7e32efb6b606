import type { ParsedText } from 'osl-compiler';
import type { BoundValue } from '../../engine/index.js';
import type { DescribedColumn } from '../../engine/protocol/row-description.js';
import type { StatementLane } from './classify.js';
import type { CatalogModel } from './model.js';
import type { BackendReply } from './reply.js';

/** Whom an engine takes a statement to come from. */
export interface CatalogCaller {
  /** The name that it logged in as. */
  readonly user: string;
  readonly session: CatalogSettings;
}

/** What a statement is to find set. */
export interface CatalogSettings {
  /** JSON: what `current_setting`, `pg_settings`, `pg_backend_pid` and `pg_stat_activity` tell; `hardening.ts` says its shape. */
  readonly told: string;
  /** What is in force in the engine itself: how moments are written and read. */
  readonly inForce: readonly (readonly [name: string, value: string])[];
}

/** What a statement takes and gives. */
export interface StatementDescription {
  readonly parameterTypes: readonly number[];
  readonly columns: readonly DescribedColumn[] | null;
}

/** Answers what is asked of catalogs: in this process, or in one that serves several. */
export interface CatalogDoor {
  /** Rows of one answer. */
  readonly maxRows: number;
  /** Who answers `text`. */
  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): StatementLane | Promise<StatementLane>;
  /** What is known of a statement already, so that no engine need be asked; null otherwise. */
  knows(model: CatalogModel, text: string, parameterTypes: readonly number[]): StatementDescription | null;
  /**
   * Lends the engine of `model` to `subject`, once its own statements before are done.
   *
   * @throws CatalogFault where none comes free in time
   */
  use<T>(
    model: CatalogModel,
    subject: string,
    signal: AbortSignal | null,
    work: (engine: CatalogEngine) => Promise<T>,
  ): Promise<T>;
}

/** The engine of one access signature, while it is lent. */
export interface CatalogEngine {
  /** @throws CatalogFault */
  describe(
    caller: CatalogCaller,
    text: string,
    parameterTypes: readonly number[],
    signal: AbortSignal | null,
  ): Promise<StatementDescription>;
  /** Runs a statement for at most `maxRows` rows; `tag` is null where there were more. @throws CatalogFault */
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
