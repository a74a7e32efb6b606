import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LIMITS } from 'osl-compiler';
import t from 'tap';
import { PACKAGE_ROOT } from '../../../src/base/package-root.js';

t.test('the page lists every limit', async (t) => {
  const page = readFileSync(join(PACKAGE_ROOT, 'docs', 'osl-sql.md'), 'utf8');
  const section = page.slice(page.indexOf('## Limits'), page.indexOf('## Statements of BI tools'));
  const listed = [...section.matchAll(/^\|[^|]+\| ([\d,]+) \|/gm)].map(([, n = '']) =>
    Number(n.replaceAll(',', '')),
  );
  t.same(listed, Object.values(LIMITS));
});
