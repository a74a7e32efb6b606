import type { AnswerColumn } from '../../../api/ask.js';
import { inTurns } from '../../../parts/rows/in-turns.js';
import { type JsonValue, textOf } from '../../../parts/rows/row-store.js';
import { headsOf } from '../answer-grid.js';
import type { AnswerState } from '../useAnswer.js';

/** Rows of an answer that the page has, in the order in which it shows them. */
export interface ShownAnswer {
  readonly columns: readonly AnswerColumn[];
  readonly rows: number;
  at(row: number, column: number): JsonValue;
  readonly isSorted: boolean;
  /** True if there may be more rows than these. */
  readonly isCut: boolean;
  /** Other members of the response; few if it has no trailer. */
  readonly members: Readonly<Record<string, unknown>>;
}

/** Answer of a query that has ended, in `order` if it is sorted. */
export function shownAnswer(
  state: Extract<AnswerState, { readonly kind: 'answered' | 'cancelled' }>,
  order: Uint32Array | null,
): ShownAnswer {
  const { store, described } = state;
  const trailer = state.kind === 'answered' ? state.trailer : null;
  // Not the receipt: its salt is for those to whom the answer is shown on purpose.
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

const TYPES: Readonly<Record<FileFormat, string>> = {
  csv: 'text/csv',
  json: 'application/json',
  parquet: 'application/vnd.apache.parquet',
};

/** Name of the file; that of an answer that was cut says so. */
export function fileName({ isCut }: Pick<ShownAnswer, 'isCut'>, format: FileFormat): string {
  return `answer${isCut ? '-incomplete' : ''}.${format}`;
}

/** Writes an answer as a file, in turns with the page. @throws UnfitError for Parquet; the reason of `signal` */
export async function answerFile(
  answer: ShownAnswer,
  format: FileFormat,
  signal: AbortSignal,
): Promise<Blob> {
  const parts = await inTurns(await partsOf(answer, format), signal);
  return new Blob([...parts], { type: TYPES[format] });
}

async function partsOf(
  answer: ShownAnswer,
  format: FileFormat,
): Promise<Generator<void, readonly BlobPart[]>> {
  switch (format) {
    case 'csv':
      return textParts(answer, csvLines(answer));
    case 'json':
      return textParts(answer, jsonLines(answer));
    case 'parquet':
      return (await import('./parquet-file.js')).parquetParts(answer);
  }
}

/** Number of cells written between two yields. */
export const CELLS = 4_096;

interface Lines {
  readonly head: string;
  row(row: number): string;
  readonly tail: string;
}

function* textParts(
  { rows, columns }: ShownAnswer,
  { head, row, tail }: Lines,
): Generator<void, readonly string[]> {
  const parts = [head];
  const step = Math.max(1, Math.floor(CELLS / columns.length));
  for (let at = 0; at < rows; at += step) {
    const end = Math.min(at + step, rows);
    parts.push(Array.from({ length: end - at }, (_, i) => row(at + i)).join(''));
    yield;
  }
  return [...parts, tail];
}

/** RFC 4180, with the values as they are. NULL is an empty field, and empty text is `""`, as in Postgres. */
function csvLines({ columns, at }: ShownAnswer): Lines {
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

/** The same members as a response of `POST /osl/query`, with one row per line. */
function jsonLines({ columns, rows, at, isCut, members }: ShownAnswer): Lines {
  const names = columns.map(({ name }) => JSON.stringify(name));
  const head = JSON.stringify({ ...members, columns, row_count: rows, truncated: isCut });
  return {
    head: `${head.slice(0, -1)},"rows":[`,
    row: (row) =>
      `${row === 0 ? '' : ','}\n{${names.map((name, i) => `${name}:${JSON.stringify(at(row, i))}`).join(',')}}`,
    tail: '\n]}\n',
  };
}
