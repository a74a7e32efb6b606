import { createHash, type X509Certificate } from 'node:crypto';
import { createScramSha256Data } from 'pg-gateway';
import { fatal, protocolViolation } from './errors.js';
import type { ScramVerifier } from './handler.js';
import { MessageReader, type MessageWriter } from './message-fields.js';
import { Backend, type Frontend } from './messages/types.js';

const VERIFIER = /^SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]{43}=):([A-Za-z0-9+/]{43}=)$/;
const MIN_ITERATIONS = 4_096;

/**
 * Parses a verifier in Postgres' format, `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`; returns null if
 * it is malformed or has too few iterations.
 */
export function readScramVerifier(text: string): ScramVerifier | null {
  const [, iterations = '', salt = '', storedKey = '', serverKey = ''] = VERIFIER.exec(text) ?? [];
  if (Number(iterations) < MIN_ITERATIONS) return null;
  return Object.freeze({ iterations: Number(iterations), salt, storedKey, serverKey });
}

/** Creates the verifier of a password, as a text for `readScramVerifier`. */
export async function makeScramVerifier(password: string, iterations = MIN_ITERATIONS): Promise<string> {
  const data = await createScramSha256Data(password.normalize('NFKC'), iterations);
  return `SCRAM-SHA-256$${data.iterations}:${data.salt}$${data.storedKey}:${data.serverKey}`;
}

/** Digest by OID of the signature algorithm. MD5 and SHA-1 are replaced by SHA-256, as RFC 5929 requires. */
const DIGESTS: ReadonlyMap<string, string> = new Map([
  ['1.2.840.113549.1.1.4', 'sha256'],
  ['1.2.840.113549.1.1.5', 'sha256'],
  ['1.2.840.113549.1.1.14', 'sha224'],
  ['1.2.840.113549.1.1.11', 'sha256'],
  ['1.2.840.113549.1.1.12', 'sha384'],
  ['1.2.840.113549.1.1.13', 'sha512'],
  ['1.2.840.10045.4.1', 'sha256'],
  ['1.2.840.10045.4.3.1', 'sha224'],
  ['1.2.840.10045.4.3.2', 'sha256'],
  ['1.2.840.10045.4.3.3', 'sha384'],
  ['1.2.840.10045.4.3.4', 'sha512'],
]);

/**
 * Returns the channel binding data `tls-server-end-point` (RFC 5929, 4.1): the hash of the server certificate, using
 * the digest of its signature. Returns null if the signature has no single digest (Ed25519, RSA-PSS); clients cannot
 * use channel binding then.
 */
export function serverEndPoint(certificate: X509Certificate): Buffer | null {
  const digest = DIGESTS.get(signatureAlgorithm(certificate.raw) ?? '');
  return digest === undefined ? null : createHash(digest).update(certificate.raw).digest();
}

interface Element {
  readonly tag: number;
  /** Offset of the element's contents in the DER data; `end` is the offset after their last byte. */
  readonly start: number;
  readonly end: number;
}

const SEQUENCE = 0x30;
const OBJECT_IDENTIFIER = 0x06;

/**
 * Returns the OID of a certificate's signature algorithm; null if the DER data is malformed. Certificate ::= SEQUENCE {
 * tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OBJECT IDENTIFIER … } … }
 */
function signatureAlgorithm(der: Buffer): string | null {
  const certificate = elementAt(der, 0);
  const signedPart = certificate?.tag === SEQUENCE ? elementAt(der, certificate.start) : null;
  const algorithm = signedPart === null ? null : elementAt(der, signedPart.end);
  const name = algorithm?.tag === SEQUENCE ? elementAt(der, algorithm.start) : null;
  return name?.tag === OBJECT_IDENTIFIER ? oidOf(der.subarray(name.start, name.end)) : null;
}

/** Returns the DER element at `at`; null if it is incomplete. */
function elementAt(der: Buffer, at: number): Element | null {
  const tag = der[at];
  const first = der[at + 1];
  if (tag === undefined || first === undefined) return null;
  const extra = first < 0x80 ? 0 : first & 0x7f;
  const start = at + 2 + extra;
  if (extra > 4 || start > der.length) return null;
  const length = extra === 0 ? first : der.readUIntBE(at + 2, extra);
  return start + length > der.length ? null : { tag, start, end: start + length };
}

function oidOf(bytes: Buffer): string {
  const [first = 0] = bytes;
  const numbers = [Math.floor(first / 40), first % 40];
  let number = 0;
  for (const byte of bytes.subarray(1)) {
    number = number * 128 + (byte & 0x7f);
    if (byte >= 0x80) continue;
    numbers.push(number);
    number = 0;
  }
  return numbers.join('.');
}

/** Decodes a PasswordMessage: one NUL-terminated string without trailing bytes. Throws 08P01 and 22021. */
export function decodePassword(body: Buffer): string {
  const reader = new MessageReader(body);
  const password = reader.cstring();
  if (reader.remainingBytes !== 0) throw protocolViolation('invalid password packet size');
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
/** Maximum length of a SASL message of the client, in bytes. */
const MAX_SASL_MESSAGE = 1_024;

/** The only channel binding type of Postgres clients (RFC 5929, section 4). */
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
export function offerScram(out: MessageWriter, channelBinding: Buffer | null): void {
  out.message(Backend.authentication, (fields) => {
    fields.int32(SASL);
    for (const mechanism of channelBinding === null ? [PLAIN] : [PLUS, PLAIN]) fields.cstring(mechanism);
    fields.byte(0);
  });
}

/**
 * Reads a SASLInitialResponse. Throws FATAL 08P01 and 28000. `channelBinding` is the channel binding data; null if channel
 * binding was not offered.
 *
 * If a client supports channel binding but reports that it was not offered, a man in the middle has manipulated the
 * list of mechanisms.
 */
export function readScramFirst(body: Buffer, channelBinding: Buffer | null): ScramChoice {
  const end = body.indexOf(0);
  if (end < 0 || body.length < end + 5) throw fatal('08P01', 'invalid SASL initial response');
  const mechanism = body.toString('latin1', 0, end);
  if (mechanism !== PLAIN && (mechanism !== PLUS || channelBinding === null))
    throw fatal('28000', 'client selected an invalid SASL authentication mechanism');
  const length = body.readInt32BE(end + 1);
  if (length < 0 || length > MAX_SASL_MESSAGE || length !== body.length - end - 5)
    throw fatal('08P01', 'invalid SASL initial response');
  const flag = FIRST.exec(body.toString('utf8', end + 5))?.[1];
  if (flag === undefined || (mechanism === PLUS) !== flag.startsWith('p='))
    throw fatal('08P01', 'malformed SCRAM message');
  const plain = Buffer.concat([Buffer.from(`${PLAIN}\0`), body.subarray(end + 1)]);
  if (flag === 'y' && channelBinding !== null)
    throw fatal('28000', 'SCRAM channel binding negotiation error', {
      detail:
        'The client supports SCRAM channel binding but thinks the server does not. However, this server does support channel binding.',
    });
  if (channelBinding === null || mechanism === PLAIN)
    return { binding: flag === 'y' ? 'eSws' : 'biws', plain };
  if (flag !== END_POINT) throw fatal('08P01', 'unsupported SCRAM channel-binding type');
  return {
    binding: Buffer.concat([Buffer.from(`${END_POINT},,`), channelBinding]).toString('base64'),
    plain,
  };
}

/** Checks a SASLResponse. Throws FATAL 08P01, or 28000 if it is bound to another channel. */
export function checkScramFinal(body: Buffer, { binding }: ScramChoice): void {
  const fields = body.length > MAX_SASL_MESSAGE ? null : FINAL.exec(body.toString('latin1'));
  if (fields === null) throw fatal('08P01', 'malformed SCRAM message');
  if (fields[1] === binding) return;
  if (binding === 'biws' || binding === 'eSws') throw fatal('08P01', 'malformed SCRAM message');
  throw fatal('28000', 'SCRAM channel binding check failed');
}
