import { messageOf } from '../../base/thrown.js';

/** Reads a document of an issuer: the key set, or its metadata. Rejects on failure. */
export type FetchDocument = (url: URL) => Promise<string>;

/** Time limit for a whole document, in ms. */
const FETCH_MS = 5_000;
/** In bytes. */
const MAX_DOCUMENT = 262_144;

/** Reads a document over HTTPS, or over HTTP from this machine. Follows no redirect; limits: 5 s, 256 KiB. */
export async function fetchDocument(url: URL): Promise<string> {
  if (!isFetchable(url)) throw new Error('it is neither https nor on this machine');
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const signal = AbortSignal.timeout(FETCH_MS);
  try {
    const response = await fetch(url, { headers, redirect: 'error', signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`it answered ${response.status}`);
    }
    return await bounded(response);
  } catch (error) {
    if (signal.aborted) throw new Error(`it did not answer within ${FETCH_MS / 1_000} s`);
    throw new Error(causeOf(error));
  }
}

/** True if an issuer's document may be fetched from `url`: its content decides which tokens are accepted. */
export function isFetchable(url: URL): boolean {
  if (url.username !== '' || url.password !== '') return false;
  const local = /^(127(\.\d+){3}|\[::1\]|localhost)$/.test(url.hostname);
  return url.protocol === 'https:' || (url.protocol === 'http:' && local);
}

async function bounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_DOCUMENT) throw new Error(`it sent more than ${MAX_DOCUMENT} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
}

function causeOf(error: unknown): string {
  return messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
}
