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
  #wake: (() => void) | null = null;
  #parsed = false;
  #bound = false;
  #described = false;
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
    else if (type === Frontend.bind) this.#busy = this.#takeBound();
    else if (type === Frontend.parse) this.#busy = this.#takeParsed();
    return this.#busy;
  }

  cancel(): void {
    this.#lane.cancel();
  }

  /** Resolves when the current series has been answered and recorded. */
  async ended(): Promise<void> {
    if (!this.#busy) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
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
    this.#wake?.();
  }

  #begin(columns: readonly ColumnDescription[]): void {
    const out = this.#host.output.messages;
    if (this.#parsed) parseComplete(out);
    if (this.#bound) bindComplete(out);
    if (this.#described) rowDescription(out, columns, this.#formats);
  }

  #takeQuery(): boolean {
    const { decoder } = this.#host;
    const { bytes, start } = decoder;
    const end = messageEnd(decoder, start);
    if (end < 0 || bytes[end - 1] !== 0) return false;
    this.#parsed = false;
    this.#bound = false;
    this.#described = true;
    this.#formats = ALL_TEXT;
    if (!this.#lane.query(bytes, start + HEADER, end - 1)) return false;
    decoder.skip(end - start);
    this.#host.statements.delete('');
    return true;
  }

  #takeBound(): boolean {
    const { decoder, statements } = this.#host;
    const series = boundSeries(decoder, decoder.start);
    if (series === null || !isWholeRun(decoder.bytes, series)) return false;
    return this.#unlessWrong(() => {
      const message = decodeBind(decoder.bytes.subarray(decoder.start + HEADER, series.bound));
      const statement = statements.find(message.statement);
      if (message.portal !== '' || statement === null) return false;
      const bind = fitBind(message, statement);
      return this.#lane.execute(statement, bind) && this.#took(series, false, bind.resultFormats);
    });
  }

  #takeParsed(): boolean {
    const { decoder, statements, prepare } = this.#host;
    const { bytes, start } = decoder;
    const end = messageEnd(decoder, start);
    const parsed = end < 0 ? null : parsedOf(bytes, start, end);
    const series = parsed === null || bytes[end] !== Frontend.bind ? null : boundSeries(decoder, end);
    if (parsed === null || series === null || !isWholeRun(bytes, series)) return false;
    const size = end - start;
    if (!statements.admits(size)) return false;
    return this.#unlessWrong(() => {
      const message = decodeBind(bytes.subarray(end + HEADER, series.bound));
      if (message.portal !== '' || message.statement !== '') return false;
      let formats = ALL_TEXT;
      const bindTo: Parameters<FastLane['parse']>[4] = (described) => {
        const bind = fitBind(message, described);
        formats = bind.resultFormats;
        return bind;
      };
      const { from, to, oids } = parsed;
      if (!this.#lane.parse(bytes, from, to, oids, bindTo)) return false;
      const text = bytes.toString('utf8', from, to);
      statements.defer(size, () => prepare(text, oids));
      return this.#took(series, true, formats);
    });
  }

  #took({ described, bound, end }: BoundSeries, parsed: boolean, formats: readonly FormatCode[]): true {
    this.#parsed = parsed;
    this.#bound = true;
    this.#described = described > bound;
    this.#formats = formats;
    this.#host.decoder.skip(end - this.#host.decoder.start);
    return true;
  }

  /** Leaves malformed messages to the regular path, which reports them. */
  #unlessWrong(take: () => boolean): boolean {
    try {
      return take();
    } catch (cause) {
      if (cause instanceof WireError) return false;
      throw cause;
    }
  }
}

/** End offsets of the messages in a series: Bind, Describe (equal to `bound` if absent), Execute, Sync. */
interface BoundSeries {
  readonly bound: number;
  readonly described: number;
  readonly executed: number;
  readonly end: number;
}

/**
 * Locates the series Bind, optional Describe, Execute, Sync that begins at `start`; returns null if other messages
 * follow the Bind or the series is incomplete.
 */
function boundSeries(decoder: FrameDecoder, start: number): BoundSeries | null {
  const { bytes } = decoder;
  const bound = messageEnd(decoder, start);
  const described = bound >= 0 && bytes[bound] === Frontend.describe ? messageEnd(decoder, bound) : bound;
  const executed =
    described >= 0 && bytes[described] === Frontend.execute ? messageEnd(decoder, described) : -1;
  const end = executed >= 0 && bytes[executed] === Frontend.sync ? messageEnd(decoder, executed) : -1;
  return end >= 0 && end === executed + HEADER ? { bound, described, executed, end } : null;
}

const UNNAMED_PORTAL = Buffer.from('P\0');
const TO_THE_END = Buffer.alloc(5);

/** True if the series runs the unnamed portal to its end, and describes no other portal. */
function isWholeRun(bytes: Buffer, { bound, described, executed }: BoundSeries): boolean {
  const isDescribed = described === bound || UNNAMED_PORTAL.equals(bytes.subarray(bound + HEADER, described));
  return isDescribed && TO_THE_END.equals(bytes.subarray(described + HEADER, executed));
}

/** Returns the text's offsets and the declared types of a Parse of the unnamed statement; null for any other Parse. */
function parsedOf(
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
