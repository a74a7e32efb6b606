import { error } from '../../../wire/index.js';

/**
 * Rows that wait for their client were decided under the rights of their time. A later portion of them is given
 * under the same rights only. @throws WireError 55000
 */
export function requireSameRights(begun: string, now: string): void {
  if (begun === now) return;
  throw error('55000', 'what this session may see has changed since the query began', {
    hint: 'run the query again',
  });
}
