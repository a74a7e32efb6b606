/** The state of the playground in the part of an address after `#`, which a browser does not send to a server. */
import { MOST_CHARACTERS, type Playground } from './state.js';

const PREFIX = '#p1=';
/** Maximum length of a link's state; long links are cut by programs that pass them on. */
const MOST_ENCODED = 32_000;
/** Maximum length of the JSON, so that a small link cannot unpack to a large text. */
const MOST_BYTES = 4 * MOST_CHARACTERS;
const MOST_NAMES = 64;

/** Encodes a state as `#p1=…`; null if it is too long for a link. */
export async function encodeLink(state: Playground): Promise<string | null> {
  const { question, manifest, policy, chain, roles } = state;
  const json = JSON.stringify([question, manifest, policy, chain, roles]);
  const packed = new Blob([json]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  const encoded = base64Url(bytes);
  return encoded.length > MOST_ENCODED ? null : `${PREFIX}${encoded}`;
}

/** Decodes a link's state; null for anything that `encodeLink` does not return. */
export async function decodeLink(hash: string): Promise<Playground | null> {
  if (!hash.startsWith(PREFIX) || hash.length > PREFIX.length + MOST_ENCODED) return null;
  const json = await unpack(hash.slice(PREFIX.length));
  return json === null ? null : stateIn(json);
}

async function unpack(encoded: string): Promise<string | null> {
  try {
    const packed = Uint8Array.from(atob(encoded.replaceAll('-', '+').replaceAll('_', '/')), (c) =>
      c.charCodeAt(0),
    );
    const reader = new Blob([packed])
      .stream()
      .pipeThrough(new DecompressionStream('deflate-raw'))
      .getReader();
    const decoder = new TextDecoder('utf-8', { fatal: true });
    let [text, size] = ['', 0];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      size += value.length;
      if (size > MOST_BYTES) {
        await reader.cancel();
        return null;
      }
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    return null; // not base64url, not compressed, or not UTF-8: no link of ours
  }
}

function stateIn(json: string): Playground | null {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return null;
  }
  if (!Array.isArray(value) || value.length !== 5) return null;
  const [question, manifest, policy, chain, roles]: readonly unknown[] = value;
  const isText = (text: unknown): text is string =>
    typeof text === 'string' && text.length <= MOST_CHARACTERS;
  if (!isText(question) || !isText(manifest) || !isText(policy)) return null;
  if (!isNames(chain) || (roles !== null && !isNames(roles))) return null;
  return { question, manifest, policy, chain, roles };
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MOST_NAMES && value.every((n) => typeof n === 'string');
}

function base64Url(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
