import {
  type ColumnDescription,
  error,
  type FetchResult,
  type Portal,
  type RowWriter,
  type WireStatement,
} from '../../../wire/index.js';
import { dataRow, rowScheduler } from '../../engine/index.js';
import { binaryRows, type CopyOptions, textRows } from './copy-rows.js';

/** `COPY (query) TO STDOUT`: sends the rows of `inner` as CopyData, one message per row. @throws WireError */
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
  let before = SIGNATURE;
  const first = (message: Buffer): Buffer => {
    const whole = copyData(Buffer.concat([before, message.subarray(HEAD)]));
    before = Buffer.alloc(0);
    return whole;
  };
  const result = await portal.fetch(0, {
    copies: (rows.copies ?? 0) + COPIES,
    write: (messages) => {
      const copied = binaryRows(messages);
      if (before.length === 0) return rows.write(copied);
      const end = 1 + copied.readInt32BE(1);
      return rows.write(Buffer.concat([first(copied.subarray(0, end)), copied.subarray(end)]));
    },
  });
  await rows.write(copyData(Buffer.concat([before, TRAILER])));
  return result;
};

function textCopy(columns: readonly ColumnDescription[], options: CopyOptions): RowCopier {
  const { forceQuote, header } = options;
  const copied = textRows(
    options,
    columns.map((c) => forceQuote === '*' || forceQuote.includes(c.name)),
  );
  const heading = textRows(
    options,
    columns.map(() => false),
  );
  return async (portal, rows) => {
    if (header) await rows.write(heading.whole(dataRow(columns.map((c) => c.name))));
    return portal.fetch(0, {
      copies: (rows.copies ?? 0) + COPIES,
      write: (messages) =>
        messages.length > AT_ONCE_BYTES
          ? inTurns(copied.portions(messages)).then((copy) => rows.write(copy))
          : rows.write(copied.whole(messages)),
    });
  };
}

/** Size in bytes above which a batch of rows is converted in portions. */
const AT_ONCE_BYTES = 65_536;
/** Peak memory of a copy, in multiples of its input: twice for escapes, plus the outgrown buffer. */
const COPIES = 3;

/** Runs a generator to completion, yielding to other work at each `yield`. */
async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await rowScheduler.wait();
  }
}

const HEAD = 5;

function copyData(body: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(HEAD + body.length);
  message.write('d', 0, 'latin1');
  message.writeInt32BE(4 + body.length, 1);
  message.set(body, HEAD);
  return message;
}
