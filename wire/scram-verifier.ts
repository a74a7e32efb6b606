import { createScramSha256Data } from 'pg-gateway';
import type { ScramVerifier } from './handler.js';

const FORM = /^SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]{43}=):([A-Za-z0-9+/]{43}=)$/;
const LEAST_ITERATIONS = 4_096;

/** Reads a verifier as Postgres writes it: `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`. */
export function readScramVerifier(text: string): ScramVerifier | null {
  const [, iterations = '', salt = '', storedKey = '', serverKey = ''] = FORM.exec(text) ?? [];
  if (Number(iterations) < LEAST_ITERATIONS) return null;
  return Object.freeze({ iterations: Number(iterations), salt, storedKey, serverKey });
}

/** Makes the verifier of a password, which cannot be turned back into it. */
export async function makeScramVerifier(password: string, iterations = LEAST_ITERATIONS): Promise<string> {
  const data = await createScramSha256Data(password.normalize('NFKC'), iterations);
  return `SCRAM-SHA-256$${data.iterations}:${data.salt}$${data.storedKey}:${data.serverKey}`;
}
