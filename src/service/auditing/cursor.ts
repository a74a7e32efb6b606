import { queryError } from 'osl-compiler';
import type { Cursor } from './messages.js';

/** Where a search goes on, as its asker keeps it. It says where to look, and nothing of what may be seen. */
export function cursorText(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64url');
}

const LONGEST = 8_192;
const MOST_CHAINS = 256;

/** @throws QueryError E0511 */
export function cursorIn(text: string): Cursor {
  const cursor = text.length > LONGEST ? null : cursorOf(parsed(text));
  if (cursor === null) throw queryError('malformedBody', { detail: '`from` is none that a page gave' });
  return cursor;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return null;
  }
}

function cursorOf(value: unknown): Cursor | null {
  if (typeof value !== 'object' || value === null) return null;
  const [before, place]: readonly unknown[] = [Reflect.get(value, 'before'), Reflect.get(value, 'place')];
  if (Reflect.get(value, 'kind') === 'chains' && typeof before === 'object' && before !== null) {
    const entries = Object.entries(before);
    const seqs = entries.filter((entry): entry is [string, number] => isSeq(entry[1]));
    return seqs.length < entries.length || seqs.length > MOST_CHAINS
      ? null
      : { kind: 'chains', before: Object.fromEntries(seqs) };
  }
  if (Reflect.get(value, 'kind') !== 'table' || !Array.isArray(place)) return null;
  const [ts, writer, seq] = place as readonly unknown[];
  if (typeof ts !== 'string' || typeof writer !== 'string' || typeof seq !== 'string') return null;
  return /^\d{1,18}$/.test(seq) && !/\0/.test(ts + writer)
    ? { kind: 'table', place: [ts, writer, seq] }
    : null;
}

function isSeq(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
