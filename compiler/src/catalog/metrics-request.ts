import type { Grain, Instant } from './grain.js';

/** A metrics question in one form, however it was spelled. Names are the caller's; their case does not count. */
export interface MetricsRequest {
  readonly metrics: readonly { readonly name: string; readonly alias: string | null }[];
  /** `entity__dimension[__grain]`, `metric_time[__grain]` or an entity. */
  readonly groupBy: readonly { readonly name: string; readonly grain: Grain | null }[];
  /** Predicates of OSL-SQL whose names are `{{ … }}` builders; all must hold. */
  readonly where: readonly string[];
  readonly orderBy: readonly {
    readonly name: string;
    readonly grain: Grain | null;
    readonly descending: boolean;
  }[];
  readonly limit: number | null;
  /** Both ends are included. */
  readonly timeConstraint: { readonly start: Instant | null; readonly end: Instant | null } | null;
  /** Of times that state none; a day unless told. */
  readonly grain: Grain | null;
}
