import { quoteIdentifier } from 'osl-compiler';
import {
  type ColumnDescription,
  error,
  type FetchResult,
  type Portal,
  type RowWriter,
  type WireStatement,
} from '../../../wire/index.js';
import { DataRowReader, dataRow, GrowingBytes, rowScheduler } from '../../engine/index.js';
import type { StatementNode } from './command.js';

const HEADER_BYTES = 5;
const COPY_DATA = 0x64;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const BACKSLASH = 0x5c;
const DOT = 0x2e;

/** Returns `COPY (query) TO STDOUT`: it sends each row of `inner` as one CopyData message. @throws WireError */
export function copyStatement(inner: WireStatement, options: CopyOptions): WireStatement {
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
  const copy = options.format === 'binary' ? binaryCopy : textCopy(columns, options);
  return {
    async fetch(_maxRows, rows) {
      const result = await copy(portal, rows);
      return { ...result, tag: result.tag.replace(/^SELECT/, 'COPY') };
    },
    close: () => portal.close(),
  };
}

type RowCopier = (portal: Portal, rows: RowWriter) => Promise<FetchResult>;

const binaryCopy: RowCopier = async (portal, rows) => {
  // As in Postgres, the signature is not sent as a separate message but before the first row.
  let prefix = SIGNATURE;
  const firstMessage = (message: Buffer): Buffer => {
    const withPrefix = copyData(Buffer.concat([prefix, message.subarray(HEADER_BYTES)]));
    prefix = Buffer.alloc(0);
    return withPrefix;
  };
  const result = await portal.fetch(0, {
    copies: (rows.copies ?? 0) + COPIES,
    write: (messages) => {
      const converted = binaryRows(messages);
      if (prefix.length === 0) return rows.write(converted);
      const end = 1 + converted.readInt32BE(1);
      return rows.write(Buffer.concat([firstMessage(converted.subarray(0, end)), converted.subarray(end)]));
    },
  });
  await rows.write(copyData(Buffer.concat([prefix, TRAILER])));
  return result;
};

function textCopy(columns: readonly ColumnDescription[], options: CopyOptions): RowCopier {
  const { forceQuote, header } = options;
  const rowEncoder = textRows(
    options,
    columns.map((c) => forceQuote === '*' || forceQuote.includes(c.name)),
  );
  const headerEncoder = textRows(
    options,
    columns.map(() => false),
  );
  return async (portal, rows) => {
    if (header) await rows.write(headerEncoder.encode(dataRow(columns.map((c) => c.name))));
    return portal.fetch(0, {
      copies: (rows.copies ?? 0) + COPIES,
      write: (messages) =>
        messages.length > MAX_BATCH_BYTES
          ? runYielding(rowEncoder.encodeInPortions(messages)).then((copy) => rows.write(copy))
          : rows.write(rowEncoder.encode(messages)),
    });
  };
}

/** Size in bytes above which a batch of rows is converted in portions. */
const MAX_BATCH_BYTES = 65_536;
/**
 * Peak memory of a copy, as a multiple of its input: two for escapes (each byte can become two) and one for the buffer
 * that was outgrown.
 */
const COPIES = 3;

/** Runs a generator to completion, yielding to other work at each `yield`. */
async function runYielding<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await rowScheduler.wait();
  }
}

function copyData(body: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  message[0] = COPY_DATA;
  message.writeInt32BE(4 + body.length, 1);
  message.set(body, HEADER_BYTES);
  return message;
}

/** Converts whole DataRow messages in text format to CopyData messages. */
interface CopyEncoder {
  encode(dataRows: Uint8Array): Buffer;
  /** Like `encode`, but for large rows: yields after each portion and returns the complete result. */
  encodeInPortions(dataRows: Uint8Array): Generator<void, Buffer>;
}

/** Number of bytes of a large value written between two yields. */
const PORTION_BYTES = 65_536;

/** Converts DataRow messages to binary COPY, in which a row differs only in the message type. */
function binaryRows(dataRows: Uint8Array): Buffer {
  const rows = new DataRowReader(Buffer.from(dataRows)); // works on a copy
  for (; rows.next(); rows.skip()) rows.source[rows.rowStart] = COPY_DATA;
  return rows.source;
}

function textRows(options: CopyOptions, forceQuoted: readonly boolean[]): CopyEncoder {
  const value = options.format === 'csv' ? csvValue(options, forceQuoted) : textValue(options);
  const delimiter = options.delimiter.charCodeAt(0);
  const nullText = Buffer.from(options.null);
  return {
    encode: (dataRows) => {
      const rows = new DataRowReader(dataRows);
      const out = new CopyBytes(dataRows.length + 64);
      while (rows.next()) {
        const message = out.beginMessage();
        for (let column = 0; column < forceQuoted.length; column++) {
          if (column > 0) out.byte(delimiter);
          if (rows.value()) value.write(rows.source, rows.start, rows.end, column, out);
          else out.copy(nullText);
        }
        out.byte(NEWLINE);
        out.endMessage(message);
      }
      return out.result();
    },
    *encodeInPortions(dataRows) {
      const rows = new DataRowReader(dataRows);
      const out = new CopyBytes(dataRows.length + 64);
      while (rows.next()) {
        const message = out.beginMessage();
        let nextYield = rows.rowStart + PORTION_BYTES;
        for (let column = 0; column < forceQuoted.length; column++) {
          if (column > 0) out.byte(delimiter);
          if (!rows.value()) out.copy(nullText);
          else yield* value.portions(rows.source, rows.start, rows.end, column, out);
          if (rows.end < nextYield) continue;
          nextYield = rows.end + PORTION_BYTES;
          yield;
        }
        out.byte(NEWLINE);
        out.endMessage(message);
      }
      return out.result();
    },
  };
}

interface CopyValue {
  write(source: Buffer, start: number, end: number, column: number, out: CopyBytes): void;
  portions(source: Buffer, start: number, end: number, column: number, out: CopyBytes): Generator<void>;
}

const ESCAPES: readonly (readonly [byte: number, letter: string])[] = [
  [0x08, 'b'],
  [0x0c, 'f'],
  [NEWLINE, 'n'],
  [RETURN, 'r'],
  [0x09, 't'],
  [0x0b, 'v'],
  [BACKSLASH, '\\'],
];

function textValue({ delimiter }: CopyOptions): CopyValue {
  // For each byte, the byte that follows the backslash in its escape; 0: not escaped.
  const escapeByte = new Uint8Array(256);
  escapeByte[delimiter.charCodeAt(0)] = delimiter.charCodeAt(0);
  for (const [byte, letter] of ESCAPES) escapeByte[byte] = letter.charCodeAt(0);
  return {
    write: (source, start, end, _column, out) => out.escape(source, start, end, BACKSLASH, escapeByte),
    *portions(source, start, end, _column, out) {
      for (const [from, to] of portionsOf(start, end)) {
        out.escape(source, from, to, BACKSLASH, escapeByte);
        yield;
      }
    },
  };
}

function* portionsOf(start: number, end: number): Generator<readonly [from: number, to: number]> {
  for (let at = start; at < end; at += PORTION_BYTES) yield [at, Math.min(at + PORTION_BYTES, end)];
}

function csvValue(options: CopyOptions, forceQuoted: readonly boolean[]): CopyValue {
  const [delimiter, quote, escapeMark] = [options.delimiter, options.quote, options.escape].map((c) =>
    c.charCodeAt(0),
  );
  if (delimiter === undefined || quote === undefined || escapeMark === undefined)
    throw new RangeError('an option is missing');
  const special = new Uint8Array(256);
  for (const byte of [delimiter, quote, NEWLINE, RETURN]) special[byte] = 1;
  const escapeByte = new Uint8Array(256);
  escapeByte[quote] = quote;
  escapeByte[escapeMark] = escapeMark;
  const nullText = Buffer.from(options.null);
  const isOnlyColumn = forceQuoted.length === 1;
  const hasSpecial = (source: Buffer, start: number, end: number): boolean => {
    for (let at = start; at < end; at++) if (special[source[at] ?? 0] === 1) return true;
    return false;
  };
  const isAmbiguous = (source: Buffer, start: number, end: number): boolean => {
    // `\.` alone on a line would mark the end of the data.
    if (isOnlyColumn && end - start === 2 && source[start] === BACKSLASH && source[start + 1] === DOT)
      return true;
    return end - start === nullText.length && source.compare(nullText, 0, nullText.length, start, end) === 0;
  };
  return {
    write: (source, start, end, column, out) => {
      if (
        forceQuoted[column] !== true &&
        !hasSpecial(source, start, end) &&
        !isAmbiguous(source, start, end)
      ) {
        out.copy(source, start, end);
        return;
      }
      out.byte(quote);
      out.escape(source, start, end, escapeMark, escapeByte);
      out.byte(quote);
    },
    *portions(source, start, end, column, out) {
      let isQuoted = forceQuoted[column] === true || isAmbiguous(source, start, end);
      for (const [from, to] of isQuoted ? [] : portionsOf(start, end)) {
        isQuoted = hasSpecial(source, from, to);
        yield;
        if (isQuoted) break;
      }
      if (isQuoted) out.byte(quote);
      for (const [from, to] of portionsOf(start, end)) {
        if (isQuoted) out.escape(source, from, to, escapeMark, escapeByte);
        else out.copy(source, from, to);
        yield;
      }
      if (isQuoted) out.byte(quote);
    },
  };
}

class CopyBytes extends GrowingBytes {
  /** Begins a message and returns its position, to be passed to `endMessage`. */
  beginMessage(): number {
    const message = this.at;
    this.byte(COPY_DATA);
    this.reserve(HEADER_BYTES - 1);
    this.bytes.writeUInt32BE(0, this.at); // filled in by `endMessage`
    this.at += HEADER_BYTES - 1;
    return message;
  }

  endMessage(message: number): void {
    this.bytes.writeUInt32BE(this.at - message - 1, message + 1);
  }

  /** Copies `source`, replacing each byte that has an entry in `escapeByte` by `escapeMark` and that entry. */
  escape(source: Uint8Array, start: number, end: number, escapeMark: number, escapeByte: Uint8Array): void {
    this.reserve(2 * (end - start));
    const { bytes } = this;
    let { at } = this;
    for (let from = start; from < end; from++) {
      const byte = source[from] ?? 0;
      const escaped = escapeByte[byte] ?? 0;
      if (escaped === 0) {
        bytes[at++] = byte;
      } else {
        bytes[at++] = escapeMark;
        bytes[at++] = escaped;
      }
    }
    this.at = at;
  }

  result(): Buffer {
    return this.bytes.subarray(0, this.at);
  }
}

type CopyNode = Extract<StatementNode, { CopyStmt: unknown }>['CopyStmt'];
type CopyOption = NonNullable<CopyNode['options']>[number];

interface CopyOptions {
  readonly format: 'text' | 'csv' | 'binary';
  readonly delimiter: string;
  readonly null: string;
  readonly header: boolean;
  readonly quote: string;
  readonly escape: string;
  /** Columns whose values are always quoted; `*` means all. */
  readonly forceQuote: '*' | readonly string[];
}

/** Validates COPY … TO STDOUT and its options like Postgres. @throws WireError */
export function copyOptions(node: CopyNode): CopyOptions {
  if (node.is_from === true) throw error('25006', 'cannot execute COPY FROM in a read-only transaction');
  if (node.is_program === true || node.filename !== undefined)
    throw error('42501', 'COPY goes to STDOUT only', { hint: 'use \\copy in psql' });
  const byName = new Map<string, CopyOption & { DefElem: unknown }>();
  for (const option of node.options ?? []) {
    if (!('DefElem' in option)) continue;
    const name = option.DefElem.defname ?? '';
    if (byName.has(name)) throw error('42601', 'conflicting or redundant options');
    byName.set(name, option);
  }
  const text = (name: string): string | null => {
    const option = byName.get(name);
    byName.delete(name);
    return option === undefined ? null : textOf(option, name);
  };
  const format = text('format') ?? 'text';
  if (format !== 'text' && format !== 'csv' && format !== 'binary')
    throw error('22023', `COPY format "${format}" not recognized`);
  const encoding = text('encoding');
  if (encoding !== null && !/^utf-?8$/i.test(encoding)) throw error('0A000', 'COPY is served in UTF-8 only');
  const csv = format === 'csv';
  const quote = text('quote');
  const forceQuote = columnList(byName.get('force_quote'));
  byName.delete('force_quote');
  const options = {
    format,
    delimiter: text('delimiter') ?? (csv ? ',' : '\t'),
    null: text('null') ?? (csv ? '' : '\\N'),
    header: parseBoolean(text('header')),
    quote: quote ?? '"',
    escape: text('escape') ?? quote ?? '"',
    forceQuote: forceQuote ?? [],
  } as const;
  for (const name of byName.keys()) throw error('42601', `option "${name}" not recognized`);
  requireConsistent(options, node.options ?? []);
  return options;
}

function requireConsistent(options: CopyOptions, nodes: readonly CopyOption[]): void {
  const { format, delimiter, quote } = options;
  const has = (name: string): boolean => nodes.some((o) => 'DefElem' in o && o.DefElem.defname === name);
  for (const name of ['delimiter', 'null'])
    if (format === 'binary' && has(name))
      throw error('42601', `cannot specify ${name.toUpperCase()} in BINARY mode`);
  for (const name of ['header', 'quote', 'escape', 'force_quote'])
    if (format !== 'csv' && has(name))
      throw error('0A000', `COPY ${name.replace('_', ' ')} available only in CSV mode`);
  for (const [name, value] of [
    ['delimiter', delimiter],
    ['quote', quote],
    ['escape', options.escape],
  ] as const) {
    if (Buffer.byteLength(value) !== 1)
      throw error('0A000', `COPY ${name} must be a single one-byte character`);
  }
  if (/[\r\n]/.test(delimiter + options.null))
    throw error('22023', 'COPY delimiter and null cannot be line ends');
  if (format === 'text' && /[\\.a-z0-9]/.test(delimiter))
    throw error('22023', `COPY delimiter cannot be "${delimiter}"`);
  if (format === 'csv' && delimiter === quote)
    throw error('22023', 'COPY delimiter and quote must be different');
  if (options.null.includes(delimiter))
    throw error('22023', 'COPY delimiter character must not appear in the NULL specification');
  if (format === 'csv' && options.null.includes(quote))
    throw error('0A000', 'CSV quote character must not appear in the NULL specification');
}

function textOf(option: CopyOption, name: string): string {
  const arg = 'DefElem' in option ? option.DefElem.arg : undefined;
  if (arg === undefined) return 'true';
  if ('String' in arg) return arg.String.sval ?? '';
  if ('Boolean' in arg) return arg.Boolean.boolval === true ? 'true' : 'false';
  if ('Integer' in arg) return String(arg.Integer.ival ?? 0);
  throw error('42601', `COPY option "${name}" takes a constant`);
}

function parseBoolean(value: string | null): boolean {
  if (value === null || /^(false|off|0)$/i.test(value)) return false;
  if (/^(true|on|1)$/i.test(value)) return true;
  throw error('42601', 'header requires a Boolean value');
}

function columnList(option: CopyOption | undefined): '*' | readonly string[] | null {
  const arg = option !== undefined && 'DefElem' in option ? option.DefElem.arg : undefined;
  if (arg === undefined) return null;
  if ('A_Star' in arg) return '*';
  if (!('List' in arg))
    throw error('42601', 'argument to option "force_quote" must be a list of column names');
  return (arg.List.items ?? []).map((item) => ('String' in item ? (item.String.sval ?? '') : ''));
}

/** Returns the query equivalent to `COPY relation (columns) TO …`; null if the COPY already contains a query. */
export function relationQuery(node: CopyNode): string | null {
  const relation = node.relation;
  if (relation === undefined) return null;
  const names = [relation.catalogname, relation.schemaname, relation.relname].filter((n) => n !== undefined);
  const columns = (node.attlist ?? []).map((c) =>
    'String' in c ? quoteIdentifier(c.String.sval ?? '') : '',
  );
  return `select ${columns.length === 0 ? '*' : columns.join(', ')} from ${names.map(quoteIdentifier).join('.')}`;
}
