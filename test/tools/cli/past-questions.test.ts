import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { SHOP_MANIFEST, SHOP_POLICY } from '../../support/shop.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { osl, temporary } from './support.js';

/** Which questions of the log another policy would answer otherwise. */

const rest = await startRest();
t.teardown(() => rest.close());
const dataDir = dirname(rest.test.auditDir);
const dir = temporary();
writeFileSync(join(dir, 'manifest.yaml'), SHOP_MANIFEST);
writeFileSync(join(dir, 'policy.yaml'), SHOP_POLICY);

const EMAILS = 'select id, email from osl.entities.customer';
for (const subject of ['user:ann', 'user:ann', 'user:eu']) await rest.ask(subject, { osql: EMAILS });
await rest.ask('user:ann', { osql: 'select id from osl.entities.order' });
await rest.ask('user:den', { osql: EMAILS });
await rest.ask('user:ann', { osql: 'select nothing_of_the_kind' });

/** What `osl policy diff --since 1h` says of the policy in which `from` is written as `to`. */
async function under(from: string | RegExp, to: string): Promise<{ text: string; questions: unknown }> {
  const changed = SHOP_POLICY.replace(from, to);
  t.not(changed, SHOP_POLICY);
  const file = join(dir, 'next.yaml');
  writeFileSync(file, changed);
  const args = ['policy', 'diff', file, '--since', '1h', '--data-dir', dataDir];
  const files = ['--manifest', join(dir, 'manifest.yaml'), '--policy', join(dir, 'policy.yaml')];
  const [text, json] = [await osl([...args, ...files]), await osl([...args, ...files, '--json'])];
  t.match(text, { code: 0, stderr: '' });
  return { text: text.stdout, questions: JSON.parse(json.stdout).questions };
}

t.test('a label in the clear, for who has that role', async (t) => {
  const { text, questions } = await under('columns: "*" }', 'columns: "*", unmask: [pii] }');
  t.match(questions, {
    asked: 5,
    otherwise: 3,
    callers: [
      { chain: ['user:ann'], object: 'osl.entities.customer', questions: 2, loses: [], gains: ['email'] },
      { chain: ['user:den'], object: 'osl.entities.customer', questions: 1 },
    ],
  });
  t.match(text, /3 of 5 questions since .* touched what would be seen otherwise\n/);
  t.match(text, /\n {2}2 of user:ann: osl\.entities\.customer: gains [a-z, ]*email/);
});

t.test('a role that is taken away, and an attribute that is another', async (t) => {
  const gone = await under('user:ann: { ceiling: [analyst] }', 'user:ann: { ceiling: [] }');
  t.match(gone.questions, { asked: 5, otherwise: 3 });
  t.match(gone.text, /1 of user:ann: osl\.entities\.order: loses /);
  const moved = await under(
    'user:eu: { ceiling: [regional], attributes: { region: eu } }',
    'user:eu: { ceiling: [regional], attributes: { region: us } }',
  );
  t.match(moved.questions, {
    otherwise: 1,
    callers: [{ chain: ['user:eu'], object: 'osl.entities.customer', loses: [], gains: [], terms: true }],
  });
  t.match(moved.text, /1 of user:eu: osl\.entities\.customer: other rows, masks or conditions/);
});

t.test('another mask, and an hour of the day', async (t) => {
  t.match((await under('pii: redact', 'pii: hash')).questions, { otherwise: 4 });
  const timed = await under(
    '- { on: order, columns: "*" }\n      - { on: product',
    '- { on: order, columns: "*", ends: 2030-01-01T00:00:00Z }\n      - { on: product',
  );
  t.match(timed.questions, { otherwise: 1, callers: [{ object: 'osl.entities.order', terms: true }] });
});

t.test('what touches nobody who asked is told as nothing', async (t) => {
  const { text, questions } = await under('user:us: { ceiling: [regional]', 'user:us: { ceiling: []');
  t.match(questions, { asked: 5, otherwise: 0, callers: [] });
  t.match(text, /subject user:us\n {2}loses role regional/);
});

t.test('a log that is not there, and a time that is none', async (t) => {
  const args = ['policy', 'diff', join(dir, 'policy.yaml'), '--manifest', join(dir, 'manifest.yaml')];
  const policy = ['--policy', join(dir, 'policy.yaml')];
  t.match(await osl([...args, ...policy, '--since', 'lately', '--data-dir', dataDir]), {
    code: 2,
    stderr: /--since takes/,
  });
  t.match(await osl([...args, ...policy, '--since', '1d', '--dir', join(dir, 'none')]), {
    code: 2,
    stderr: /there is no audit log/,
  });
  const [reading] = (
    await osl(['audit', 'search', '--data-dir', dataDir, '--action', 'audit.read', '--json'])
  ).stdout
    .split('\n')
    .filter((line) => line.includes('policy diff'));
  t.match(reading, /"command\\":\\"policy diff/, 'and that the log was read is on record');
});
