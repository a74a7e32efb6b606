import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { ensureDemo } from '../../../cli/demo/load.js';
import { indexContent } from '../../../src/service/indexing/index-content.js';
import { openService } from '../../../src/service/open.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { emptyDatabases } from '../../support/embedded-data.js';
import { memberAt, postQuery, startFrontends } from '../../support/frontends.js';
import { startNativePostgres } from '../../support/native-postgres.js';
import { nameServer, onPostgres } from '../../support/service.js';
import { QUESTIONS } from './demo-table.js';
import { TOPICS } from './demo-topics.js';

// The whole demo is read and indexed.
t.setTimeout(600_000);

/** Number of questions that must find a right package in the first five passages. */
const NEEDED = 18;
const E_MAIL = /[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}/;

const root = join(import.meta.dirname, '..', '..', '..', '..');
const dir = mkdtempSync(join(tmpdir(), 'osl-demo-questions-'));
const examples = join(root, 'examples', 'supply-chain');
const policyFile = join(dir, 'policy.yaml');
writeFileSync(
  policyFile,
  readFileSync(join(examples, 'policy.yaml'), 'utf8').replace('query: 60', 'query: 100000'),
);
const postgres = process.env['OSL_TEST_ENGINE'] === 'postgres' ? await startNativePostgres() : null;
const manifest = readFileSync(join(examples, 'manifest.yaml'), 'utf8');
const manifestFile = join(dir, 'manifest.yaml');
const URL_ENV = 'OSL_TEST_DEMO_URL';
writeFileSync(manifestFile, postgres === null ? manifest : onPostgres(manifest, URL_ENV));
if (postgres !== null) nameServer(postgres, URL_ENV);
const settings = settingsFrom({}, dir, {
  manifestFile,
  policyFile,
  dataDir: join(dir, 'data'),
});
const quiet = (): void => undefined;
if (postgres === null) await emptyDatabases(settings.dataDir, manifest);
const open = await openService(settings, { info: quiet, warn: quiet, error: quiet });
const { service } = open;
const engine = open.databases.get(service.defaultConnector);
if (engine === undefined) throw new Error('the demo has one connector');
await ensureDemo(engine.system, root);
await indexContent(service.model().manifest, open.databases, settings.content, [], quiet);
const fronts = await startFrontends(open);
t.teardown(async () => {
  await fronts.stop();
  await open.close();
  await postgres?.stop();
  rmSync(dir, { recursive: true, force: true });
});

async function passages(role: string, facet: string, query: string, topK: number) {
  const authorization = `Bearer ${await fronts.token({ subject: `user:${role}`, aclRoles: [role] })}`;
  const osql = `select package_path, text, score, cite from RETRIEVE(facet => '${facet}', query => $1, top_k => ${topK})`;
  const { json, outcome, raw } = await postQuery(
    fronts.httpPort,
    { osql, parameters: [query] },
    { authorization },
  );
  if (outcome.kind === 'refused') throw new Error(outcome.message);
  const rows = memberAt(json, 'rows');
  if (!Array.isArray(rows)) throw new Error('no rows');
  return { rows: rows as readonly Readonly<Record<string, unknown>>[], raw: raw.toString('utf8') }; // rows are objects
}

t.test('questions about the installed packages find them', async (t) => {
  t.equal(QUESTIONS.length, 20);
  let right = 0;
  for (const { question, answers } of QUESTIONS) {
    const { rows } = await passages('analyst', 'readme', question, 5);
    const found = rows.map((r) => String(r['package_path']));
    const hit = found.findIndex((path) => answers.some((a) => path.endsWith(`node_modules/${a}`)));
    if (hit >= 0) right++;
    t.comment(`${hit < 0 ? 'missed' : `at ${hit + 1}`}: ${question} → ${found.join(', ')}`);
  }
  t.comment(`${right} of ${QUESTIONS.length} have a right package in the first five`);
  t.ok(right >= NEEDED, `${right} of ${QUESTIONS.length}`);
});

t.test('addresses are for the auditor only', async (t) => {
  let clear = 0;
  const queries = ['contact the author by email', 'license copyright', 'sponsors maintainer security report'];
  for (const query of [...queries, ...QUESTIONS.map((q) => q.question)]) {
    for (const facet of ['readme', 'changelog']) {
      const masked = await passages('analyst', facet, query, 20);
      t.notMatch(masked.rows.map((r) => r['text']).join('\n'), E_MAIL, `${facet}: ${query}`);
      const { rows } = await passages('auditor', facet, query, 20);
      clear += rows.filter((r) => E_MAIL.test(String(r['text']))).length;
    }
  }
  t.comment(`${clear} of the auditor's passages have an address`);
  t.ok(clear > 0);
});

t.test('topics of READMEs are those that a reader would give, or none', async (t) => {
  const authorization = `Bearer ${await fronts.token({ subject: 'user:analyst', aclRoles: ['analyst'] })}`;
  const paths = [...TOPICS.keys()].map((name) => `'node_modules/${name}'`);
  const osql = `select name, license, readme_topic, evidence from osl.entities.package where path in (${paths})`;
  const { json } = await postQuery(fronts.httpPort, { osql }, { authorization });
  const rows = memberAt(json, 'rows') as readonly { name: string; readme_topic: string | null }[]; // as asked
  const labelled = rows.filter((r) => r.readme_topic !== null);
  const wrong = labelled.filter((r) => TOPICS.get(r.name)?.includes(r.readme_topic ?? '') !== true);
  t.comment(
    `${labelled.length} of ${rows.length} have a topic; wrong: ${wrong.map((r) => `${r.name} ${r.readme_topic}`)}`,
  );
  t.ok(labelled.length >= rows.length * 0.6);
  t.ok(wrong.length <= labelled.length * 0.25);
  t.ok(new Set(labelled.map((r) => r.readme_topic)).size >= 9);
});
