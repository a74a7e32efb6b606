import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { int32, join, message, text } from './bytes.js';

const hmac = (key: Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest();

const SALTED = new Map<string, Buffer>();

/** Its thousands of rounds are worked out once. */
function saltedPassword(password: string, salt: Buffer, iterations: number): Buffer {
  const key = `${password} ${salt.toString('base64')} ${iterations}`;
  const salted = SALTED.get(key) ?? pbkdf2Sync(password.normalize('NFKC'), salt, iterations, 32, 'sha256');
  SALTED.set(key, salted);
  return salted;
}

/** The client's side of SCRAM-SHA-256 (RFC 5802, 7677), written independently of `wire/`, with a nonce that is given. */
export class ScramClient {
  readonly #password: string;
  readonly #bare: string;
  #serverSignature = '';

  constructor(password: string, nonce: string) {
    this.#password = password;
    this.#bare = `n=,r=${nonce}`;
  }

  /** SASLInitialResponse. */
  first(): Buffer {
    const said = `n,,${this.#bare}`;
    return message('p', text('SCRAM-SHA-256'), int32(said.length), said);
  }

  /** SASLResponse to the body of AuthenticationSASLContinue. */
  final(challenge: Buffer): Buffer {
    const asked = challenge.subarray(4).toString();
    const fields = new Map(asked.split(',').map((f) => [f.slice(0, 1), f.slice(2)]));
    const salt = Buffer.from(fields.get('s') ?? '', 'base64');
    const salted = saltedPassword(this.#password, salt, Number(fields.get('i')));
    const clientKey = hmac(salted, 'Client Key');
    const storedKey = createHash('sha256').update(clientKey).digest();
    const unproved = `c=biws,r=${fields.get('r')}`;
    const signed = `${this.#bare},${asked},${unproved}`;
    const signature = hmac(storedKey, signed);
    const proof = Buffer.from(clientKey.map((byte, i) => byte ^ signature.readUInt8(i)));
    this.#serverSignature = hmac(hmac(salted, 'Server Key'), signed).toString('base64');
    return join(message('p', `${unproved},p=${proof.toString('base64')}`));
  }

  /** True if the body of AuthenticationSASLFinal shows that the server knows the password. */
  trusts(final: Buffer): boolean {
    return final.subarray(4).toString() === `v=${this.#serverSignature}`;
  }
}
