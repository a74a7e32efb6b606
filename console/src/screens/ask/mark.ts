import type { Problem } from '../../api/problem.js';
import type { Mark } from './editor/Editor.js';
import { placeOf } from './fix.js';

/** The mark that an error has in its text; null where it has no place there. */
export function markOf(text: string, { position, code, detail, hint }: Problem): Mark | null {
  const place = placeOf(text, position);
  if (place === null) return null;
  return { ...place, message: [`${code}: ${detail}`, ...(hint === null ? [] : [hint])].join('\n') };
}
