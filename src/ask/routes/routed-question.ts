import type { BoundValue, StandbyReads } from '../../engine/index.js';
import type { Caller } from '../request/caller.js';
import type { Literals, Route } from './route.js';
import type { Sweep } from './sweep.js';

/** A query of a known shape, for the fast path. */
export interface RoutedQuestion extends RunValues {
  readonly route: Route;
  readonly caller: Caller;
  readonly requestId: string | null;
  /** The statement is the UTF-8 text in bytes [`start`, `end`). */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly literals: Literals;
  readonly timeout: TimeLimit;
  /** Permits a standby to answer; null if only the primary may. */
  readonly standby: StandbyReads | null;
}

export interface RunValues {
  readonly parameters: readonly BoundValue[];
  readonly resultFormats: readonly (0 | 1)[];
}

/** Time after which a query is stopped. */
export interface TimeLimit {
  readonly ms: number;
  /** True if this is the session's limit, false if it is the service's. */
  readonly own: boolean;
}

/** State shared by all queries of a surface. */
export interface FastQuestions {
  readonly sweep: Sweep;
  taken: number;
}
