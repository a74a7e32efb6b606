import { InternalError } from 'osl-compiler';
import type { BoundValue } from './statement.js';

export type CopySource = Iterable<readonly (string | null)[]> | AsyncIterable<readonly (string | null)[]>;

/** Target size of a batch of COPY text in bytes. */
const BATCH_BYTES = 2_097_152;

/** Converts a JavaScript value to a parameter in text format: arrays to Postgres arrays, plain objects to JSON. */
export function textValue(value: unknown): BoundValue {
  const text = textOf(value);
  return { format: 0, bytes: text === null ? null : Buffer.from(text, 'utf8') };
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return `{${value.map(arrayElement).join(',')}}`;
  if (typeof value === 'object') return JSON.stringify(value);
  return String(value);
}

function arrayElement(value: unknown): string {
  if (Array.isArray(value)) return textOf(value) ?? 'NULL';
  const text = textOf(value);
  return text === null ? 'NULL' : `"${text.replace(/["\\]/g, '\\$&')}"`;
}

export interface CopyBatch {
  readonly bytes: Uint8Array;
  readonly rows: number;
}

/** Encodes rows in COPY's text format, a few megabytes at a time. Throws InternalError if a row has the wrong width. */
export async function* copyBatches(rows: CopySource, width: number): AsyncGenerator<CopyBatch> {
  let lines: string[] = [];
  let size = 0;
  for await (const row of rows) {
    if (row.length !== width) throw new InternalError(`a row of ${row.length} values for ${width} columns`);
    const line = row.map(copyValue).join('\t');
    lines.push(line);
    size += line.length + 1;
    if (size >= BATCH_BYTES) {
      yield batchOf(lines);
      lines = [];
      size = 0;
    }
  }
  if (lines.length > 0) yield batchOf(lines);
}

function batchOf(lines: readonly string[]): CopyBatch {
  return { bytes: Buffer.from(`${lines.join('\n')}\n`, 'utf8'), rows: lines.length };
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

function copyValue(value: string | null): string {
  if (value === null) return '\\N';
  return /[\\\n\r\t]/.test(value) ? value.replace(/[\\\n\r\t]/g, (c) => ESCAPES.get(c) ?? c) : value;
}
