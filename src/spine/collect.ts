import type { GovernedPlan } from 'osl-compiler';
import type { BoundValue, Engine } from '../engine/index.js';

/** A row's values in Postgres' text format, by output name. */
export type TextRow = ReadonlyMap<string, string | null>;

export interface CollectLimits {
  readonly maxRows: number;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
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
      for (const row of textRows(messages, names)) rows.push(row);
    },
  };
  const { truncated } = await engine.governed.execute(plan, values, { resultFormats: [], ...limits }, sink);
  return { rows, truncated };
}

/** Decodes whole DataRow messages: `D`, length, count, then each value with its length, -1 for NULL. */
function* textRows(messages: Uint8Array, names: readonly string[]): Generator<TextRow> {
  const bytes = Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    let from = at + 7;
    const row = new Map<string, string | null>();
    for (const name of names) {
      const length = bytes.readInt32BE(from);
      from += 4;
      row.set(name, length < 0 ? null : bytes.toString('utf8', from, from + length));
      if (length > 0) from += length;
    }
    yield row;
    at = end;
  }
}
