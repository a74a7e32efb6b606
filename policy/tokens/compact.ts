import { type JsonFault, type JsonObject, parseJsonObject } from './strict-json.js';
import { MAX_TOKEN_BYTES, refuse } from './token-fault.js';

/** The parts of a compact JWS, decoded; nothing in it is verified. */
export interface CompactToken {
  readonly header: JsonObject;
  readonly payload: Uint8Array;
}

/**
 * Takes a compact JWS apart. Stricter than the RFC's readers: one spelling per token, so that its hash is its
 * name (no padding, no white space, no spare bits in a last character, no key twice).
 */
export function readCompact(token: string): CompactToken {
  if (token.length > MAX_TOKEN_BYTES) refuse('size');
  const [header, payload, signature, ...more] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0)
    refuse('parts');
  decodeCanonical(signature);
  return { header: readObject(decodeCanonical(header), 'header'), payload: decodeCanonical(payload) };
}

export function readObject(bytes: Uint8Array, part: 'header' | 'payload'): JsonObject {
  const object: JsonObject | JsonFault = parseJsonObject(bytes);
  if (object === 'duplicate key') refuse('duplicateKey');
  if (object === 'not an object') refuse(part);
  return object;
}

function decodeCanonical(part: string): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  if (bytes.length === 0 || bytes.toString('base64url') !== part) refuse('parts');
  return bytes;
}
