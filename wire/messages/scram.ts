import { fatal, protocolViolation } from '../errors.js';
import { MessageReader } from '../message-reader.js';
import type { MessageWriter } from '../message-writer.js';
import { Backend, type Frontend } from './types.js';

/** Decodes a PasswordMessage: one NUL-terminated string without trailing bytes. Throws 08P01 and 22021. */
export function decodePassword(body: Buffer): string {
  const reader = new MessageReader(body);
  const password = reader.cstring();
  if (reader.left !== 0) throw protocolViolation('invalid password packet size');
  return password;
}

/** Encodes a message with this body into its own buffer. */
export function encodePassword(type: typeof Frontend.password, body: Buffer): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(5 + body.length);
  message[0] = type;
  new DataView(message.buffer).setUint32(1, 4 + body.length);
  message.set(body, 5);
  return message;
}

const PLAIN = 'SCRAM-SHA-256';
const PLUS = 'SCRAM-SHA-256-PLUS';
const SASL = 10;
/** Maximum message length on either side, in bytes. */
const LONGEST = 1_024;

/** The only channel binding type of Postgres clients (RFC 5929, 4). */
const END_POINT = 'p=tls-server-end-point';
/** The client-first message: channel binding flag, no authzid, user, nonce. */
const FIRST = /^(n|y|p=[A-Za-z0-9.-]{1,64}),,n=[^,]*,r=[\x21-\x2b\x2d-\x7e]{1,256}$/;
const FINAL = /^c=([A-Za-z0-9+/]+={0,2}),r=[\x21-\x2b\x2d-\x7e]{1,512},p=[A-Za-z0-9+/]{43}=$/;

export interface ScramChoice {
  /** The expected `c=` value of the client-final message, in base64. */
  readonly binding: string;
  /** The client-first message for an exchange without channel binding. */
  readonly plain: Buffer;
}

/** Writes AuthenticationSASL with the available mechanisms, channel binding first. */
export function offerScram(out: MessageWriter, endPoint: Buffer | null): void {
  out.message(Backend.authentication, (fields) => {
    fields.int32(SASL);
    for (const mechanism of endPoint === null ? [PLAIN] : [PLUS, PLAIN]) fields.cstring(mechanism);
    fields.byte(0);
  });
}

/**
 * Reads a SASLInitialResponse. Throws FATAL 08P01 and 28000. `endPoint`: the channel binding data; null if not offered.
 *
 * A client that supports channel binding but reports that it was not offered has received a manipulated mechanism list,
 * which means a man in the middle.
 */
export function readScramFirst(body: Buffer, endPoint: Buffer | null): ScramChoice {
  const end = body.indexOf(0);
  if (end < 0 || body.length < end + 5) throw fatal('08P01', 'invalid SASL initial response');
  const mechanism = body.toString('latin1', 0, end);
  if (mechanism !== PLAIN && (mechanism !== PLUS || endPoint === null))
    throw fatal('28000', 'client selected an invalid SASL authentication mechanism');
  const length = body.readInt32BE(end + 1);
  if (length < 0 || length > LONGEST || length !== body.length - end - 5)
    throw fatal('08P01', 'invalid SASL initial response');
  const flag = FIRST.exec(body.toString('utf8', end + 5))?.[1];
  if (flag === undefined || (mechanism === PLUS) !== flag.startsWith('p='))
    throw fatal('08P01', 'malformed SCRAM message');
  const plain = Buffer.concat([Buffer.from(`${PLAIN}\0`), body.subarray(end + 1)]);
  if (flag === 'y' && endPoint !== null)
    throw fatal('28000', 'SCRAM channel binding negotiation error', {
      detail:
        'The client supports SCRAM channel binding but thinks the server does not. However, this server does support channel binding.',
    });
  if (endPoint === null || mechanism === PLAIN) return { binding: flag === 'y' ? 'eSws' : 'biws', plain };
  if (flag !== END_POINT) throw fatal('08P01', 'unsupported SCRAM channel-binding type');
  return { binding: Buffer.concat([Buffer.from(`${END_POINT},,`), endPoint]).toString('base64'), plain };
}

/** Checks a SASLResponse. Throws FATAL 08P01, or 28000 if it is bound to another channel. */
export function checkScramFinal(body: Buffer, { binding }: ScramChoice): void {
  const said = body.length > LONGEST ? null : FINAL.exec(body.toString('latin1'));
  if (said === null) throw fatal('08P01', 'malformed SCRAM message');
  if (said[1] === binding) return;
  if (binding === 'biws' || binding === 'eSws') throw fatal('08P01', 'malformed SCRAM message');
  throw fatal('28000', 'SCRAM channel binding check failed');
}
