import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { ManifestProblems } from '../../../src/model/manifest/index.js';
import { loadLineageConfig } from '../../../src/service/lineage/config/load.js';
import { signedHeaders } from '../../../src/service/lineage/delivery/send.js';
import { ROOT } from '../../tools/cli/support.js';

const dir = mkdtempSync(join(tmpdir(), 'osl-lineage-config-'));
t.teardown(() => rmSync(dir, { recursive: true, force: true }));

const KEY = Buffer.alloc(24, 8);
const SECRET = `whsec_${KEY.toString('base64')}`;
process.env['OSL_LINEAGE_SECRET'] = SECRET;
writeFileSync(join(dir, 'old.secret'), `${SECRET}\n`);

function load(text: string) {
  const file = join(dir, 'lineage.yaml');
  writeFileSync(file, text);
  return loadLineageConfig(file);
}

const PAGE = readFileSync(join(ROOT, 'docs', 'lineage.md'), 'utf8');

function block(language: string): string {
  return new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(PAGE)?.[1] ?? '';
}

t.test('the file in docs/lineage.md loads', async (t) => {
  const text = block('yaml').replace('/run/secrets/lineage-old', 'old.secret');
  const { endpoints, windowMs, outboxBytes, namespace } = await load(text);
  t.match(endpoints, [
    { name: 'catalog', events: ['run', 'dataset'], timeoutMs: 15_000, allowAddresses: [] },
  ]);
  t.strictSame([windowMs, outboxBytes, namespace], [60_000, 64 * 1_048_576, null]);
  t.equal(
    endpoints[0]?.secrets[1],
    `file:${join(dir, 'old.secret')}`,
    'files lie beside the file that names them',
  );
});

t.test('the verification in docs/lineage.md verifies', async (t) => {
  const source = `${block('js')}\nexport { verify };`;
  const page: unknown = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const { verify } = page as {
    verify: (headers: object, body: string, secret: string, now: number) => boolean; // as the page has it
  };
  const body = '{"x":"ä"}';
  const headers = signedHeaders('run_1', 1_800_000_000, body, [Buffer.alloc(24, 1), KEY]);
  const now = 1_800_000_000_000;
  t.ok(verify(headers, body, SECRET, now + 299_000));
  t.notOk(verify(headers, body, SECRET, now + 301_000), 'too late');
  t.notOk(verify(headers, `${body} `, SECRET, now), 'another body');
  t.notOk(verify({ ...headers, 'webhook-id': 'run_2' }, body, SECRET, now), 'another id');
  t.notOk(verify({ ...headers, 'webhook-timestamp': '1800000001' }, body, SECRET, now), 'another time');
  t.notOk(verify(headers, body, `whsec_${Buffer.alloc(24, 2).toString('base64')}`, now), 'another secret');
});

const GOOD =
  'version: 1\nendpoints:\n  a:\n    url: https://x.example/\n    secrets: ["env:OSL_LINEAGE_SECRET"]\n';

t.test('what is wrong is told, and a secret never', async (t) => {
  await load(GOOD);
  const shapes: readonly (readonly [string, RegExp])[] = [
    ['version: 1\n', /endpoints/],
    ['version: 1\nendpoints: {}\n', /endpoints/],
    [GOOD.replace('url:', 'uri:'), /uri/],
    [GOOD.replace('https:', 'ftp:'), /url/],
    [GOOD.replace('env:OSL_LINEAGE_SECRET', SECRET), /secrets/],
    [`${GOOD}    events: [all]\n`, /events/],
    [`${GOOD}window_seconds: 0\n`, /window_seconds/],
  ];
  for (const [text, place] of shapes) {
    const problems = await load(text).then(
      () => null,
      (error: unknown) => error,
    );
    t.ok(problems instanceof ManifestProblems, text);
    t.match(problems instanceof Error ? problems.message : '', place);
  }
  process.env['OSL_TEST_NO_KEY'] = 'whsec_dG9vIHNob3J0';
  const faults: readonly (readonly [string, RegExp])[] = [
    [GOOD.replace('x.example', 'me:pass@x.example'), /without a user/],
    [GOOD.replace('x.example', ':pass@x.example'), /without a user/],
    [GOOD.replace('OSL_LINEAGE_SECRET', 'NOT_SET_AT_ALL'), /NOT_SET_AT_ALL is not set/],
    [GOOD.replace('env:OSL_LINEAGE_SECRET', 'file:none.secret'), /none\.secret cannot be read/],
    [GOOD.replace('OSL_LINEAGE_SECRET', 'OSL_TEST_NO_KEY'), /24 to 64 bytes/],
    [`${GOOD}    allow_addresses: [10.0.0.0/33]\n`, /is no network/],
    [`${GOOD}    ca_file: none.pem\n`, /none\.pem cannot be read/],
  ];
  for (const [text, message] of faults) {
    const fault = await load(text).then(
      () => null,
      (error: unknown) => error,
    );
    t.match(fault, { name: 'StartProblem', message });
    t.notMatch(fault instanceof Error ? fault.message : '', /dG9v|:pass/);
  }
});
