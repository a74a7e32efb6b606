import { fatal } from '../errors.js';
import type { LengthLimit } from '../input.js';

const code = (letter: string) => letter.charCodeAt(0);

/** The type bytes of client messages. */
export const Frontend = Object.freeze({
  bind: code('B'),
  close: code('C'),
  copyData: code('d'),
  copyDone: code('c'),
  copyFail: code('f'),
  describe: code('D'),
  execute: code('E'),
  flush: code('H'),
  functionCall: code('F'),
  parse: code('P'),
  password: code('p'),
  query: code('Q'),
  sync: code('S'),
  terminate: code('X'),
});

/** The type bytes of server messages. */
export const Backend = Object.freeze({
  authentication: code('R'),
  backendKeyData: code('K'),
  bindComplete: code('2'),
  closeComplete: code('3'),
  commandComplete: code('C'),
  copyDone: code('c'),
  copyOutResponse: code('H'),
  emptyQueryResponse: code('I'),
  errorResponse: code('E'),
  negotiateProtocolVersion: code('v'),
  noData: code('n'),
  noticeResponse: code('N'),
  notificationResponse: code('A'),
  parameterDescription: code('t'),
  parameterStatus: code('S'),
  parseComplete: code('1'),
  portalSuspended: code('s'),
  readyForQuery: code('Z'),
  rowDescription: code('T'),
});

/** PQ_SMALL_MESSAGE_LIMIT and PG_MAX_AUTH_TOKEN_LENGTH in Postgres. */
const SMALL_MESSAGE = 10_000;
const MAX_AUTH_TOKEN = 65_535;

/** Accepts only password messages, of at most 65,535 bytes. */
export const passwordOnly: LengthLimit = (type) => {
  if (type === Frontend.password) return MAX_AUTH_TOKEN;
  throw fatal('08P01', `expected password response, got message type ${type}`);
};

/** Length limits within a session, per type as in Postgres. Unknown types are refused before their length is read. */
export function sessionLimits(maxMessageBytes: number): LengthLimit {
  const smallLimit = Math.min(SMALL_MESSAGE, maxMessageBytes);
  return (type) => {
    switch (type) {
      case Frontend.query:
      case Frontend.parse:
      case Frontend.bind:
      case Frontend.functionCall:
      case Frontend.copyData:
        return maxMessageBytes;
      case Frontend.describe:
      case Frontend.execute:
      case Frontend.close:
      case Frontend.flush:
      case Frontend.sync:
      case Frontend.terminate:
      case Frontend.copyDone:
      case Frontend.copyFail:
        return smallLimit;
      default:
        throw fatal('08P01', `invalid frontend message type ${type}`);
    }
  };
}
