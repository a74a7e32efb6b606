import { setImmediate } from 'node:timers/promises';
import type { GovernedPlan } from 'osl-compiler';
import {
  type BoundValue,
  eachDataRow,
  type GovernedEngine,
  type MemoryShare,
  type StatementSettings,
  type TransactionSnapshot,
  textValuesOf,
} from '../../engine/index.js';

/** Values in Postgres' text format, by output name. */
export type TextRow = ReadonlyMap<string, string | null>;

export interface CollectLimits {
  readonly subject: string;
  readonly maxRows: number;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
  readonly settings?: StatementSettings | undefined;
  readonly snapshot?: TransactionSnapshot | null;
  readonly spent?: (ms: number) => void;
  /** Rows count against it until it is released. */
  readonly memory: MemoryShare;
}

/** Overhead of a row, in bytes; its texts have two bytes a character. */
const ROW_BYTES = 200;

/** Runs a governed plan and collects its rows, for the bounded steps before a statement. */
export async function collect(
  engine: GovernedEngine,
  plan: GovernedPlan,
  values: readonly BoundValue[],
  { memory, ...limits }: CollectLimits,
): Promise<{ readonly rows: readonly TextRow[]; readonly truncated: boolean }> {
  const rows: TextRow[] = [];
  const names = plan.outputs.map((o) => o.name);
  const sink = {
    write: (messages: Uint8Array, count: number): void | Promise<void> => {
      memory.require(2 * messages.length + count * ROW_BYTES);
      const read = (part: readonly Buffer[]): void => {
        for (const row of part) {
          const texts = textValuesOf(row);
          rows.push(new Map(names.map((name, i) => [name, texts[i] ?? null])));
        }
      };
      const all = [...eachDataRow(messages)];
      return all.length <= AT_ONCE ? read(all) : readInTurns(all, read);
    },
  };
  const { truncated } = await engine.execute(plan, values, { resultFormats: [], ...limits }, sink);
  return { rows, truncated };
}

const AT_ONCE = 4_096;

async function readInTurns(all: readonly Buffer[], read: (part: readonly Buffer[]) => void): Promise<void> {
  for await (const part of slices(all)) read(part);
}

const SLICE = 4_096;

/** Slices of `list`, yielding to the event loop between them. */
export async function* slices<T>(list: readonly T[]): AsyncGenerator<readonly T[]> {
  for (let from = 0; from < list.length; from += SLICE) {
    if (from > 0) await setImmediate();
    yield list.slice(from, from + SLICE);
  }
}
