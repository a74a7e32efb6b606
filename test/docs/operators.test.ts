import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { operatorsPage } from './operators-page.js';

const PAGE = join(process.cwd(), 'docs', 'operators.md');

test('docs/operators.md and the table of operators say the same', (t) => {
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, operatorsPage());
  t.equal(readFileSync(PAGE, 'utf8'), operatorsPage(), 'run OSL_WRITE_DOCS=1 npm test to write it anew');
  t.end();
});
