import { readFileSync } from 'node:fs';
import t, { test } from 'tap';
import { generateShop, METRICS_MANIFEST, METRICS_POLICY, scriptOf } from '../language/metrics/shop.js';
import { startRest } from '../surfaces/rest/fixture.js';

t.setTimeout(600_000);

const PAGE = new URL('../../../docs/metrics.md', import.meta.url);

test('the examples of docs/metrics.md are answered, or refused with the code that stands beside them', async (t) => {
  const rest = await startRest({
    manifest: METRICS_MANIFEST,
    policy: METRICS_POLICY,
    script: scriptOf(generateShop(7)),
  });
  t.teardown(() => rest.close());
  const page = readFileSync(PAGE, 'utf8');
  const bodies = [...page.matchAll(/^```json ?(\w*)\n(.*?)^```$/gms)];
  t.ok(bodies.length >= 6, `${bodies.length} bodies`);
  for (const [, code = '', body = ''] of bodies) {
    const reply = await rest.ask('user:all', body);
    if (code !== '') t.match(reply.json(), { code }, body);
    else
      t.ok(
        reply.status === 200 && Number(reply.json()['row_count']) > 0,
        `${body} ${reply.text.slice(0, 200)}`,
      );
  }
  const texts = [...page.matchAll(/^```sql\n(.*?)^```$/gms)];
  t.ok(texts.length >= 1);
  for (const [, osql = ''] of texts) t.equal((await rest.ask('user:all', { osql })).status, 200, osql);
});
