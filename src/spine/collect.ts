import type { GovernedPlan } from 'osl-compiler';
import {
  type BoundValue,
  type Engine,
  eachDataRow,
  type Snapshot,
  type StatementSettings,
  textValuesOf,
} from '../engine/index.js';

/** A row's values in Postgres' text format, by output name. */
export type TextRow = ReadonlyMap<string, string | null>;

export interface CollectLimits {
  readonly maxRows: number;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
  readonly settings?: StatementSettings | undefined;
  readonly snapshot?: Snapshot | null;
}

/** Runs a governed plan and keeps its rows: for the steps before a statement, which are bounded. */
export async function collect(
  engine: Engine,
  plan: GovernedPlan,
  values: readonly BoundValue[],
  limits: CollectLimits,
): Promise<{ readonly rows: readonly TextRow[]; readonly truncated: boolean }> {
  const rows: TextRow[] = [];
  const names = plan.outputs.map((o) => o.name);
  const sink = {
    write: (messages: Uint8Array): void => {
      for (const row of eachDataRow(messages)) {
        const texts = textValuesOf(row);
        rows.push(new Map(names.map((name, i) => [name, texts[i] ?? null])));
      }
    },
  };
  const { truncated } = await engine.governed.execute(plan, values, { resultFormats: [], ...limits }, sink);
  return { rows, truncated };
}
