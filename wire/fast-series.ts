import { WireError } from './errors.js';
import type {
  Awaitable,
  ColumnDescription,
  FastAnswer,
  FastLane,
  FastStream,
  FormatCode,
  WireNotice,
  WireStatement,
} from './handler.js';
import type { FrameDecoder } from './input.js';
import { bindComplete, decodeBind, parseComplete } from './messages/extended.js';
import { commandComplete, noticeResponse, rowDescription } from './messages/results.js';
import { Frontend } from './messages/types.js';
import type { SocketWriter } from './output.js';
import type { NamedStatements } from './prepared.js';
import { fitBind } from './prepared.js';

export interface FastSession {
  readonly decoder: FrameDecoder;
  readonly output: SocketWriter;
  readonly statements: NamedStatements;
  prepare(text: string, parameterTypes: readonly number[]): Awaitable<WireStatement | null>;
  /**
   * Called when a series has been answered, except for ReadyForQuery. `failure` is the error that ended it; null if it
   * succeeded.
   */
  onAnswered(failure: { readonly cause: unknown } | null): void;
}

/** Maximum message length for the fast lane; point queries are short. */
const MAX_MESSAGE = 8_192;
const HEADER = 5;

/**
 * Recognizes series of messages that the handler's fast lane can answer: a Query, or Bind, Describe, Execute and Sync
 * of a statement named earlier or in a preceding Parse. A series is either taken completely, synchronously when its
 * last byte arrives, or left in the buffer.
 */
export class FastSeries implements FastAnswer {
  readonly #host: FastSession;
  readonly #lane: FastLane;
  #busy = false;
  #onEnded: (() => void) | null = null;
  #hasParse = false;
  #hasBind = false;
  #hasDescribe = false;
  #formats: readonly FormatCode[] = ALL_TEXT;

  constructor(host: FastSession, laneOf: (answer: FastAnswer) => FastLane) {
    this.#host = host;
    this.#lane = laneOf(this);
  }

  get busy(): boolean {
    return this.#busy;
  }

  /**
   * Takes the buffered series if it is complete and the fast lane accepts it. Otherwise returns false and leaves it in
   * the buffer.
   */
  take(): boolean {
    const type = this.#host.decoder.peek();
    if (type === Frontend.query) this.#busy = this.#takeQuery();
    else if (type === Frontend.bind) this.#busy = this.#takeBindSeries();
    else if (type === Frontend.parse) this.#busy = this.#takeParseSeries();
    return this.#busy;
  }

  cancel(): void {
    this.#lane.cancel();
  }

  /** Resolves when the current series has been answered and recorded. */
  async ended(): Promise<void> {
    if (!this.#busy) return;
    await new Promise<void>((resolve) => {
      this.#onEnded = resolve;
    });
  }

  answered(
    columns: readonly ColumnDescription[],
    rows: Uint8Array,
    tag: string,
    notices: readonly WireNotice[],
  ): void {
    this.#begin(columns);
    if (rows.length > 0) this.#host.output.messages.append(rows);
    this.#finish(tag, notices);
  }

  streaming(columns: readonly ColumnDescription[]): FastStream {
    this.#begin(columns);
    return {
      write: (messages) => this.#host.output.write(messages),
      finished: (tag, notices) => this.#finish(tag, notices),
      failed: (cause) => this.#end({ cause }),
    };
  }

  failed(columns: readonly ColumnDescription[], cause: unknown): void {
    this.#begin(columns);
    this.#end({ cause });
  }

  #finish(tag: string, notices: readonly WireNotice[]): void {
    const out = this.#host.output.messages;
    for (const notice of notices) noticeResponse(out, notice);
    commandComplete(out, tag);
    this.#end(null);
  }

  #end(failure: { readonly cause: unknown } | null): void {
    this.#busy = false;
    this.#host.onAnswered(failure);
    this.#onEnded?.();
  }

  #begin(columns: readonly ColumnDescription[]): void {
    const out = this.#host.output.messages;
    if (this.#hasParse) parseComplete(out);
    if (this.#hasBind) bindComplete(out);
    if (this.#hasDescribe) rowDescription(out, columns, this.#formats);
  }

  #takeQuery(): boolean {
    const { decoder } = this.#host;
    const { bytes, start } = decoder;
    const end = messageEnd(decoder, start);
    if (end < 0 || bytes[end - 1] !== 0) return false;
    this.#hasParse = false;
    this.#hasBind = false;
    this.#hasDescribe = true;
    this.#formats = ALL_TEXT;
    if (!this.#lane.query(bytes, start + HEADER, end - 1)) return false;
    decoder.skip(end - start);
    this.#host.statements.delete('');
    return true;
  }

  #takeBindSeries(): boolean {
    const { decoder, statements } = this.#host;
    const series = bindSeriesAt(decoder, decoder.start);
    if (series === null || !runsUnnamedPortal(decoder.bytes, series)) return false;
    return this.#takeIfValid(() => {
      const message = decodeBind(decoder.bytes.subarray(decoder.start + HEADER, series.bindEnd));
      const statement = statements.find(message.statement);
      if (message.portal !== '' || statement === null) return false;
      const bind = fitBind(message, statement);
      return this.#lane.execute(statement, bind) && this.#consume(series, false, bind.resultFormats);
    });
  }

  #takeParseSeries(): boolean {
    const { decoder, statements, prepare } = this.#host;
    const { bytes, start } = decoder;
    const end = messageEnd(decoder, start);
    const parse = end < 0 ? null : readUnnamedParse(bytes, start, end);
    const series = parse === null || bytes[end] !== Frontend.bind ? null : bindSeriesAt(decoder, end);
    if (parse === null || series === null || !runsUnnamedPortal(bytes, series)) return false;
    const size = end - start;
    if (!statements.admits(size)) return false;
    return this.#takeIfValid(() => {
      const message = decodeBind(bytes.subarray(end + HEADER, series.bindEnd));
      if (message.portal !== '' || message.statement !== '') return false;
      let formats = ALL_TEXT;
      const bindTo: Parameters<FastLane['parse']>[4] = (statement) => {
        const bind = fitBind(message, statement);
        formats = bind.resultFormats;
        return bind;
      };
      const { from, to, oids } = parse;
      if (!this.#lane.parse(bytes, from, to, oids, bindTo)) return false;
      const text = bytes.toString('utf8', from, to);
      statements.defer(size, () => prepare(text, oids));
      return this.#consume(series, true, formats);
    });
  }

  #consume(
    { describeEnd, bindEnd, end }: BindSeries,
    hasParse: boolean,
    formats: readonly FormatCode[],
  ): true {
    this.#hasParse = hasParse;
    this.#hasBind = true;
    this.#hasDescribe = describeEnd > bindEnd;
    this.#formats = formats;
    this.#host.decoder.skip(end - this.#host.decoder.start);
    return true;
  }

  /** Leaves malformed messages to the regular path, which reports them. */
  #takeIfValid(take: () => boolean): boolean {
    try {
      return take();
    } catch (cause) {
      if (cause instanceof WireError) return false;
      throw cause;
    }
  }
}

/** End offsets of the messages in a series: Bind, Describe (equal to `bindEnd` if absent), Execute, Sync. */
interface BindSeries {
  readonly bindEnd: number;
  readonly describeEnd: number;
  readonly executeEnd: number;
  readonly end: number;
}

/**
 * Locates the series Bind, optional Describe, Execute, Sync that begins at `start`; returns null if other messages
 * follow the Bind or the series is incomplete.
 */
function bindSeriesAt(decoder: FrameDecoder, start: number): BindSeries | null {
  const { bytes } = decoder;
  const bindEnd = messageEnd(decoder, start);
  const describeEnd =
    bindEnd >= 0 && bytes[bindEnd] === Frontend.describe ? messageEnd(decoder, bindEnd) : bindEnd;
  const executeEnd =
    describeEnd >= 0 && bytes[describeEnd] === Frontend.execute ? messageEnd(decoder, describeEnd) : -1;
  const end = executeEnd >= 0 && bytes[executeEnd] === Frontend.sync ? messageEnd(decoder, executeEnd) : -1;
  return end >= 0 && end === executeEnd + HEADER ? { bindEnd, describeEnd, executeEnd, end } : null;
}

const UNNAMED_PORTAL = Buffer.from('P\0');
const UNNAMED_ALL_ROWS = Buffer.alloc(5);

/** True if the series runs the unnamed portal to its end, and describes no other portal. */
function runsUnnamedPortal(bytes: Buffer, { bindEnd, describeEnd, executeEnd }: BindSeries): boolean {
  const isDescribed =
    describeEnd === bindEnd || UNNAMED_PORTAL.equals(bytes.subarray(bindEnd + HEADER, describeEnd));
  return isDescribed && UNNAMED_ALL_ROWS.equals(bytes.subarray(describeEnd + HEADER, executeEnd));
}

/** Returns the text's offsets and the declared types of a Parse of the unnamed statement; null for any other Parse. */
function readUnnamedParse(
  bytes: Buffer,
  start: number,
  end: number,
): { readonly from: number; readonly to: number; readonly oids: readonly number[] } | null {
  const from = start + HEADER + 1;
  const to = bytes.indexOf(0, from);
  if (bytes[from - 1] !== 0 || to < 0 || to + 3 > end) return null;
  const count = bytes.readUInt16BE(to + 1);
  if (to + 3 + 4 * count !== end) return null;
  const oids: number[] = [];
  for (let i = 0; i < count; i++) oids.push(bytes.readUInt32BE(to + 3 + 4 * i));
  return { from, to, oids };
}

const ALL_TEXT: readonly FormatCode[] = Object.freeze([]);

/** Returns the end of the message at `start`; −1 if it is incomplete, or malformed or too long for the fast lane. */
function messageEnd({ bytes, end }: FrameDecoder, start: number): number {
  if (end - start < HEADER) return -1;
  const length = bytes.readUInt32BE(start + 1);
  return length < 4 || length > MAX_MESSAGE || end - start < length + 1 ? -1 : start + 1 + length;
}
