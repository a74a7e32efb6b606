import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { EXPLANATIONS } from '../../cli/error-explanations.js';
import { errorLines, errorPage } from './error-table.js';

const PAGE = join(process.cwd(), 'docs', 'errors.md');

test('docs/errors.md and the catalogue say the same', (t) => {
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, errorPage());
  t.equal(readFileSync(PAGE, 'utf8'), errorPage(), 'run OSL_WRITE_DOCS=1 npm test to write it anew');
  t.end();
});

test('each code is explained, with a page, and no other', (t) => {
  const codes = [...new Set(errorLines().map(({ code }) => code))].sort();
  t.strictSame([...EXPLANATIONS.keys()], codes);
  t.end();
});

test('codes have the form that scripts may rely on', (t) => {
  for (const line of errorLines()) {
    t.match(line.code, /^E\d{4}$/, `${line.name} has a code`);
    t.match(line.sqlstate, /^[0-9A-Z]{5}$/, `${line.name} has an SQLSTATE`);
    t.ok(line.http >= 400 && line.http < 600, `${line.name} has an HTTP status`);
    t.match(line.message, /^[a-z‹`]/, `${line.name} begins in lower case`);
  }
  t.end();
});
