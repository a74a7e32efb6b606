import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { ROOT } from '../tools/cli/support.js';
import { faultsOfBase, linesOfBase, MOST_LINES, trustedBasePage } from './trusted-base.js';

const PAGE = join(ROOT, 'docs', 'trusted-base.md');

test('the trusted base imports nothing but itself and what is argued not to matter', (t) => {
  t.strictSame(faultsOfBase(), []);
  t.end();
});

test('the trusted base does not grow by itself', (t) => {
  const lines = linesOfBase();
  t.ok(lines <= MOST_LINES, `${lines} lines of at most ${MOST_LINES}`);
  t.end();
});

test('docs/trusted-base.md says what the table says, with counts that are right to a hundredth', (t) => {
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, trustedBasePage());
  const page = readFileSync(PAGE, 'utf8');
  const anew = 'OSL_WRITE_DOCS=1 node dist/test/docs/trusted-base.test.js writes it';
  // A line more in one file makes no page stale: the next who writes it brings the counts along.
  const words = (text: string): string => text.replaceAll(/[\d,]+/g, '0');
  t.equal(words(page), words(trustedBasePage()), anew);
  const said = Number(/files, ([\d,]+) lines/.exec(page)?.[1]?.replaceAll(',', ''));
  t.ok(Math.abs(said - linesOfBase()) <= linesOfBase() / 100, anew);
  t.end();
});
