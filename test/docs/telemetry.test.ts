import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ROOT } from '../tools/cli/support.js';
import { metricsOfServer } from './telemetry.js';

t.setTimeout(120_000);

const PAGE = join(ROOT, 'docs', 'operations.md');
const BEGIN = '<!-- telemetry: OSL_WRITE_DOCS=1 node dist/test/docs/telemetry.test.js -->';
const END = '<!-- end of telemetry -->';

t.test('docs/operations.md has every metric that a server tells, and no other', async (t) => {
  const metrics = [...(await metricsOfServer()).values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  t.ok(metrics.length > 30);
  const rows = metrics.map(
    ({ name, type, labels, help }) =>
      `| \`${name}\` | ${type} | ${labels.map((l) => `\`${l}\``).join(', ')} | ${help} |`,
  );
  const table = ['', '| name | type | labels | what |', '| --- | --- | --- | --- |', ...rows, ''].join('\n');
  const text = readFileSync(PAGE, 'utf8');
  const written = text.slice(0, text.indexOf(BEGIN) + BEGIN.length) + table + text.slice(text.indexOf(END));
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, written);
  t.equal(readFileSync(PAGE, 'utf8'), written, 'run OSL_WRITE_DOCS=1 node dist/test/docs/telemetry.test.js');
});
