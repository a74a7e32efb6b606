import type { AnswerColumn } from '../../../../../clients/typescript/types.js';
import { inTurns, type JsonValue, textOf } from '../../../parts/rows/row-store.js';
import { QueryableThread } from '../../../parts/thread.js';
import { headsOf } from '../answer-grid.js';
import type { AnswerState } from '../useAnswer.js';
import type { ParquetQuestions } from './parquet-file.js';

/** The rows of an answer that are in the page, in the order shown. */
export interface ExportedAnswer {
  readonly columns: readonly AnswerColumn[];
  readonly rows: number;
  at(row: number, column: number): JsonValue;
  readonly isSorted: boolean;
  /** True if the answer may have more rows. */
  readonly isCut: boolean;
  /** Members of the trailer except the receipt; if the answer has no trailer, only `redacted_columns`. */
  readonly members: Readonly<Record<string, unknown>>;
}

/** Returns the rows of a query that has ended, in `order`; if `order` is null, the rows keep their original order. */
export function shownAnswer(
  state: Extract<AnswerState, { readonly kind: 'answered' | 'cancelled' }>,
  order: Uint32Array | null,
): ExportedAnswer {
  const { store, described } = state;
  const trailer = state.kind === 'answered' ? state.trailer : null;
  // The receipt is not exported, because its salt should be passed on only deliberately.
  const { receipt: _, ...members } = trailer ?? {
    receipt: undefined,
    redacted_columns: described.redacted_columns,
  };
  const columns = headsOf(store, described.columns);
  const places = columns.map(({ name }) => store.names.indexOf(name));
  return {
    columns,
    rows: store.rows,
    at: (row, column) => store.at(order?.[row] ?? row, places[column] ?? -1),
    isSorted: order !== null,
    isCut: trailer?.truncated !== false,
    members,
  };
}

export const FILE_FORMATS = ['csv', 'json', 'parquet'] as const;
export type FileFormat = (typeof FILE_FORMATS)[number];

/** Returns the file name, which says `incomplete` if the answer may have more rows. */
export function fileName({ isCut }: Pick<ExportedAnswer, 'isCut'>, format: FileFormat): string {
  return `answer${isCut ? '-incomplete' : ''}.${format}`;
}

/** Writes a file, yielding often. @throws Error if Parquet cannot hold a value; the abort reason of `signal` */
export async function answerFile(
  answer: ExportedAnswer,
  format: FileFormat,
  signal: AbortSignal,
): Promise<Blob> {
  switch (format) {
    case 'csv':
      return new Blob(await inTurns(textParts(answer, csvLines(answer)), signal), { type: 'text/csv' });
    case 'json':
      return new Blob(await inTurns(textParts(answer, jsonLines(answer)), signal), {
        type: 'application/json',
      });
    case 'parquet':
      return parquetFile(answer, signal);
  }
}

/** Sends the rows to a worker thread, which loads the Parquet library and writes the file. */
async function parquetFile(answer: ExportedAnswer, signal: AbortSignal): Promise<Blob> {
  const worker = new Worker(new URL('./parquet-file.ts', import.meta.url), { type: 'module' });
  const thread = new QueryableThread<ParquetQuestions>(worker);
  try {
    const { columns, rows, at } = answer;
    await thread.ask('begin', { columns, trailer: trailerOf(answer) });
    const step = stepOf(answer);
    for (let from = 0; from < rows; from += step) {
      const length = Math.min(step, rows - from);
      await thread.ask(
        'add',
        columns.map((_, column) => Array.from({ length }, (_, i) => at(from + i, column))),
      );
      signal.throwIfAborted();
    }
    return await thread.ask('end', null);
  } finally {
    thread.stop();
  }
}

/** Returns the number of rows to process between two yields. */
function stepOf({ columns }: ExportedAnswer): number {
  return Math.max(1, Math.floor(CELLS / columns.length));
}

function trailerOf({ columns, rows, isCut, members }: ExportedAnswer): object {
  return { ...members, columns, row_count: rows, truncated: isCut };
}

/** Number of cells to process between two yields. */
const CELLS = 8_192;
/** Size in characters above which the text so far becomes a Blob, so that a large file is never held as one string. */
const PART = 1_000_000;

interface RowTexts {
  readonly head: string;
  row(row: number): string;
  readonly tail: string;
}

function* textParts(answer: ExportedAnswer, { head, row, tail }: RowTexts): Generator<void, Blob[]> {
  const parts: Blob[] = [];
  let text = head;
  const { rows } = answer;
  const step = stepOf(answer);
  for (let at = 0; at < rows; at += step) {
    const end = Math.min(at + step, rows);
    for (let i = at; i < end; i += 1) text += row(i);
    if (text.length > PART) {
      parts.push(new Blob([text]));
      text = '';
    }
    yield;
  }
  return [...parts, new Blob([text, tail])];
}

/** Formats CSV (RFC 4180), values unaltered. As in Postgres, NULL is empty and an empty text is `""`. */
function csvLines({ columns, at }: ExportedAnswer): RowTexts {
  return {
    head: `${columns.map(({ name }) => csvField(name)).join(',')}\r\n`,
    row: (row) => `${columns.map((_, column) => csvField(at(row, column))).join(',')}\r\n`,
    tail: '',
  };
}

function csvField(value: JsonValue): string {
  if (value === null) return '';
  const text = textOf(value);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Formats an answer with the same members as a response of `POST /osl/query`, with one row per line. */
function jsonLines(answer: ExportedAnswer): RowTexts {
  const { columns, at } = answer;
  const names = columns.map(({ name }) => JSON.stringify(name));
  const head = JSON.stringify(trailerOf(answer));
  return {
    head: `${head.slice(0, -1)},"rows":[`,
    row: (row) =>
      `${row === 0 ? '' : ','}\n{${names.map((name, i) => `${name}:${JSON.stringify(at(row, i))}`).join(',')}}`,
    tail: '\n]}\n',
  };
}
