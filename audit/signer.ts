import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  checkpointBody,
  formatSignature,
  formatVerifierKey,
  PUBLIC_KEY_FILE,
  parseVerifierKey,
  type VerifierKey,
} from './checkpoint.js';
import { syncDirectory, writeDurably } from './disk.js';
import { AuditDamaged } from './errors.js';

export const PRIVATE_KEY_FILE = 'checkpoint.key';
const ORIGIN = 'osl-audit/';
const WRITER = /^[\w.-]{1,64}$/;

/** Signs the checkpoints of a writer. The key's name is the origin of the log and ends in the writer id. */
export interface Signer {
  readonly writer: string;
  readonly verifier: VerifierKey;
  /** `verifier` as text, which is also the content of `checkpoint.vkey`. */
  readonly verifierKey: string;
  /** Returns a signed checkpoint note. @param more additional extension lines, each ending in a newline */
  sign(size: number, root: Buffer, time: string, more?: string): string;
}

/**
 * Loads the key pair of the log in `dir`, or creates it on the first start: the private key as PKCS #8 PEM with mode
 * 0600, the public key as `checkpoint.vkey` next to the segments.
 *
 * @param fresh true if the directory contains no segment yet
 * @throws AuditDamaged if a log exists but its keys are missing or do not match
 * @throws RangeError if `writer` is malformed or is not the writer of the log
 */
export function loadSigner(dir: string, keyFile: string, writer: string | undefined, fresh: boolean): Signer {
  const publicFile = join(dir, PUBLIC_KEY_FILE);
  if (!existsSync(publicFile)) {
    if (!fresh) throw new AuditDamaged(publicFile, 0, 0, 'the verifier key is missing');
    createKeys(dir, keyFile, publicFile, writer ?? randomBytes(8).toString('hex'));
  }
  const verifierKey = readFileSync(publicFile, 'utf8').trim();
  const verifier = parseVerifierKey(verifierKey);
  if (!existsSync(keyFile)) throw new AuditDamaged(keyFile, 0, 0, 'the signing key is missing');
  const key = createPrivateKey(readFileSync(keyFile));
  if (!createPublicKey(key).equals(verifier.key)) {
    throw new AuditDamaged(keyFile, 0, 0, 'the signing key does not belong to the verifier key of the log');
  }
  const stored = verifier.name.slice(ORIGIN.length);
  if (writer !== undefined && writer !== stored) {
    throw new RangeError(`the audit log in ${dir} belongs to writer \`${stored}\`, not \`${writer}\``);
  }
  return {
    writer: stored,
    verifier,
    verifierKey,
    sign: (size, root, time, more) =>
      signNote(checkpointBody(verifier.name, size, root, time, more), key, verifier),
  };
}

function createKeys(dir: string, keyFile: string, publicFile: string, writer: string): void {
  if (!WRITER.test(writer)) throw new RangeError(`the audit writer id \`${writer}\` must match ${WRITER}`);
  if (!existsSync(keyFile)) {
    const { privateKey } = generateKeyPairSync('ed25519');
    writeDurably(keyFile, Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })), 0o600);
  }
  const spki = createPublicKey(createPrivateKey(readFileSync(keyFile))).export({
    type: 'spki',
    format: 'der',
  });
  const line = `${formatVerifierKey(`${ORIGIN}${writer}`, spki.subarray(-32))}\n`;
  writeDurably(publicFile, Buffer.from(line), 0o644);
  syncDirectory(dir);
}

function signNote(body: string, key: KeyObject, verifier: VerifierKey): string {
  return `${body}\n${formatSignature(verifier.name, verifier.id, sign(null, Buffer.from(body), key))}`;
}
