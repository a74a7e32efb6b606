import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { functionsPage } from './functions-page.js';

const PAGE = join(process.cwd(), 'docs', 'functions.md');

test('docs/functions.md and the table say the same', (t) => {
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, functionsPage());
  t.equal(readFileSync(PAGE, 'utf8'), functionsPage(), 'run OSL_WRITE_DOCS=1 npm test to write it anew');
  t.end();
});
