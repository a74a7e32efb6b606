import { readFileSync, writeFileSync } from 'node:fs';
import type { Test } from 'tap';

/**
 * Checks that a page holds this table between two comments; with OSL_WRITE_DOCS=1 it is written there first.
 *
 * @param rows lines of Markdown, those of the head among them
 */
export function keptTable(
  t: Pick<Test, 'ok'>,
  page: string,
  [begin, end]: readonly [begin: string, end: string],
  rows: readonly string[],
): void {
  const table = [begin, '', ...rows, '', end].join('\n');
  const text = readFileSync(page, 'utf8');
  if (process.env['OSL_WRITE_DOCS'] === '1')
    writeFileSync(
      page,
      text.slice(0, text.indexOf(begin)) + table + text.slice(text.indexOf(end) + end.length),
    );
  t.ok(readFileSync(page, 'utf8').includes(table), 'run OSL_WRITE_DOCS=1 npm test to write it anew');
}
