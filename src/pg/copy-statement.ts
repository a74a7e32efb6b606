import {
  type ColumnDescription,
  error,
  type Portal,
  type RowWriter,
  type Statement,
} from '../../wire/index.js';
import { eachDataRow, textValuesOf } from '../engine/index.js';
import type { CopyOptions } from './copy-options.js';

/** `COPY (question) TO STDOUT`: the rows of `inner` as CopyData, one message a row. @throws WireError */
export function copyStatement(inner: Statement, options: CopyOptions): Statement {
  const columns = inner.columns ?? [];
  if (inner.parameterTypes.length > 0) throw error('42P02', 'COPY takes no parameters');
  requireColumns(options, columns);
  const format = options.format === 'binary' ? 1 : 0;
  return {
    parameterTypes: [],
    columns: null,
    copy: { columns: columns.length, format },
    open: async () => {
      const resultFormats = columns.map(() => format as 0 | 1);
      const portal = await inner.open({ parameterFormats: [], parameters: [], resultFormats });
      return copyPortal(portal, columns, options);
    },
  };
}

function requireColumns({ forceQuote }: CopyOptions, columns: readonly ColumnDescription[]): void {
  if (forceQuote === '*') return;
  for (const name of forceQuote) {
    if (!columns.some((c) => c.name === name)) throw error('42703', `column "${name}" does not exist`);
  }
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const TRAILER = Buffer.from([0xff, 0xff]);

function copyPortal(portal: Portal, columns: readonly ColumnDescription[], options: CopyOptions): Portal {
  const binary = options.format === 'binary';
  const row = binary ? binaryRow : textRow(columns, options);
  return {
    async fetch(_maxRows, rows) {
      if (options.header) await rows.write(headerRow(columns, options));
      // As from Postgres, the signature has no message of its own: it comes with the first row.
      let before: Buffer | null = binary ? SIGNATURE : null;
      const written = (body: Uint8Array): Buffer => {
        const message = copyData(before === null ? body : Buffer.concat([before, body]));
        before = null;
        return message;
      };
      const copied: RowWriter = {
        write: (messages) =>
          rows.write(Buffer.concat([...eachDataRow(messages)].map((r) => written(row(r))))),
      };
      const result = await portal.fetch(0, copied);
      if (binary) await rows.write(written(TRAILER));
      return { ...result, tag: result.tag.replace(/^SELECT/, 'COPY') };
    },
    close: () => portal.close(),
  };
}

function copyData(body: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(5 + body.length);
  message.write('d', 0, 'latin1');
  message.writeInt32BE(4 + body.length, 1);
  message.set(body, 5);
  return message;
}

/** A row of binary COPY is a DataRow under another name. */
function binaryRow(dataRow: Buffer): Uint8Array {
  return dataRow.subarray(5);
}

function textRow(
  columns: readonly ColumnDescription[],
  options: CopyOptions,
): (dataRow: Buffer) => Uint8Array {
  const { forceQuote } = options;
  const forced = columns.map((c) => forceQuote === '*' || forceQuote.includes(c.name));
  return (dataRow) => {
    const values = textValuesOf(dataRow);
    const parts = values.map((v, i) => valueText(v, forced[i] === true, values.length === 1, options));
    return Buffer.from(`${parts.join(options.delimiter)}\n`, 'utf8');
  };
}

function headerRow(columns: readonly ColumnDescription[], options: CopyOptions): Buffer {
  const names = columns.map((c) => valueText(c.name, false, columns.length === 1, options));
  return copyData(Buffer.from(`${names.join(options.delimiter)}\n`, 'utf8'));
}

function valueText(value: string | null, forced: boolean, alone: boolean, options: CopyOptions): string {
  if (value === null) return options.null;
  return options.format === 'csv'
    ? csvValue(value, forced, alone, options)
    : escaped(value, options.delimiter);
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
]);

function escaped(value: string, delimiter: string): string {
  const text = value.replace(/[\b\f\n\r\t\v\\]/g, (c) => ESCAPES.get(c) ?? c);
  return ESCAPES.has(delimiter) ? text : text.replaceAll(delimiter, () => `\\${delimiter}`);
}

function csvValue(value: string, forced: boolean, alone: boolean, options: CopyOptions): string {
  const { delimiter, quote, escape: mark } = options;
  const special = value.includes(delimiter) || value.includes(quote) || /[\r\n]/.test(value);
  if (!forced && !special && value !== options.null && !(alone && value === '\\.')) return value;
  const inside = mark === quote ? value : value.replaceAll(mark, () => mark + mark);
  return quote + inside.replaceAll(quote, () => mark + quote) + quote;
}
