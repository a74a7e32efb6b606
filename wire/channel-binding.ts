import { createHash, type X509Certificate } from 'node:crypto';
import { createScramSha256Data } from 'pg-gateway';
import type { ScramVerifier } from './handler.js';

const FORM = /^SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]{43}=):([A-Za-z0-9+/]{43}=)$/;
const LEAST_ITERATIONS = 4_096;

/** Parses a verifier in the format of Postgres: `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`. */
export function readScramVerifier(text: string): ScramVerifier | null {
  const [, iterations = '', salt = '', storedKey = '', serverKey = ''] = FORM.exec(text) ?? [];
  if (Number(iterations) < LEAST_ITERATIONS) return null;
  return Object.freeze({ iterations: Number(iterations), salt, storedKey, serverKey });
}

/** Creates the verifier of a password. */
export async function makeScramVerifier(password: string, iterations = LEAST_ITERATIONS): Promise<string> {
  const data = await createScramSha256Data(password.normalize('NFKC'), iterations);
  return `SCRAM-SHA-256$${data.iterations}:${data.salt}$${data.storedKey}:${data.serverKey}`;
}

/** The digest for each signature algorithm OID. MD5 and SHA-1 are replaced by SHA-256. */
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
 * Channel binding `tls-server-end-point` (RFC 5929, 4.1): the hash of the server certificate, using the digest of its
 * signature. Null if the signature has no single digest (Ed25519, RSA-PSS); clients cannot use channel binding then.
 */
export function serverEndPoint(certificate: X509Certificate): Buffer | null {
  const digest = DIGESTS.get(signatureAlgorithm(certificate.raw) ?? '');
  return digest === undefined ? null : createHash(digest).update(certificate.raw).digest();
}

interface Element {
  readonly tag: number;
  /** The range of its contents. */
  readonly start: number;
  readonly end: number;
}

const SEQUENCE = 0x30;
const OBJECT_IDENTIFIER = 0x06;

/** Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OBJECT IDENTIFIER … } … } */
function signatureAlgorithm(der: Buffer): string | null {
  const certificate = elementAt(der, 0);
  const signed = certificate?.tag === SEQUENCE ? elementAt(der, certificate.start) : null;
  const algorithm = signed === null ? null : elementAt(der, signed.end);
  const name = algorithm?.tag === SEQUENCE ? elementAt(der, algorithm.start) : null;
  return name?.tag === OBJECT_IDENTIFIER ? oidOf(der.subarray(name.start, name.end)) : null;
}

/** The DER element at `at`; null if it is incomplete. */
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
