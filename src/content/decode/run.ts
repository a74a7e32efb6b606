import type { DecoderName } from 'osl-compiler';
import { type ArgumentValues, checkArguments } from '../../model/facets/arguments.js';
import { askChat, type ChatEndpoint, DecoderFailure, type DecoderFault } from './chat.js';
import { type DecoderPassage, type DecoderTask, decoderTask } from './operators.js';

/** An entry of the response's `errors`. */
export interface RowError {
  readonly operator: DecoderName;
  readonly chunkId: string;
  readonly fault: DecoderFault;
  /** One lower-case sentence without any text of the passage or the model. */
  readonly message: string;
}

export interface DecodedColumn {
  /** One for each passage, in their order; null where it failed. */
  readonly values: readonly unknown[];
  readonly errors: readonly RowError[];
}

const DEFAULT_CONCURRENCY = 4;
/** Failures in a row, after their retries, after which the endpoint is taken to be down. */
const DOWN_AFTER = 3;

/**
 * Checks a decoder operator's arguments without asking anything, so that a bad call fails before retrieval.
 *
 * @throws InvalidArgument
 */
export function checkDecoder(operator: DecoderName, values: ArgumentValues): void {
  decoderTask(operator, checkArguments(operator, values));
}

/**
 * The column of one decoder operator, one passage a request. What fails for one passage is null there and an
 * error beside it.
 *
 * @throws InvalidArgument; what `signal` aborts with
 */
export async function runDecoder(
  operator: DecoderName,
  passages: readonly DecoderPassage[],
  values: ArgumentValues,
  endpoint: ChatEndpoint,
  signal?: AbortSignal,
): Promise<DecodedColumn> {
  const task = decoderTask(operator, checkArguments(operator, values));
  const column: unknown[] = new Array(passages.length).fill(null);
  const faults: DecoderFailure[][] = passages.map(() => []);
  const queue = passages.entries();
  let failedInRow = 0;
  const worker = async (): Promise<void> => {
    for (const [i, passage] of queue) {
      const result =
        failedInRow >= DOWN_AFTER
          ? { value: null, faults: [new DecoderFailure('endpoint', 'the endpoint failed for other rows')] }
          : await decodeOne(task, passage, endpoint, signal);
      failedInRow = result.faults.some((f) => f.fault === 'endpoint') ? failedInRow + 1 : 0;
      column[i] = result.value;
      faults[i] = [...result.faults];
    }
  };
  const workers = Math.max(1, Math.min(endpoint.concurrency ?? DEFAULT_CONCURRENCY, passages.length));
  await Promise.all(Array.from({ length: workers }, worker));
  const errors = passages.flatMap(({ chunkId }, i) =>
    (faults[i] ?? []).map(({ fault, message }): RowError => ({ operator, chunkId, fault, message })),
  );
  return { values: column, errors };
}

async function decodeOne(
  task: DecoderTask,
  passage: DecoderPassage,
  endpoint: ChatEndpoint,
  signal?: AbortSignal,
): Promise<{ readonly value: unknown; readonly faults: readonly DecoderFailure[] }> {
  try {
    return task.value(await askChat(endpoint, task.question(passage), signal), passage);
  } catch (error) {
    if (error instanceof DecoderFailure) return { value: null, faults: [error] };
    throw error;
  }
}
