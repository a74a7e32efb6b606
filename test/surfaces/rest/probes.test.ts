import t, { test } from 'tap';
import { recordLine } from '../../../cli/audit/read.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { eventually, freshAddress, type RestFixture, startRest } from './fixture.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

/** What a process is asked about itself stands in the log, counted by window and path. */

const PATHS = ['/ready', '/metrics', '/openapi.json', '/.well-known/oauth-protected-resource/mcp'];
const ACTIONS = ['health', 'mcp_metadata', 'metrics', 'openapi', 'ready'];

async function counted(rest: RestFixture) {
  const records = await rest.test.records();
  return records.filter((r) => r.kind === 'event' && ACTIONS.includes(r.action));
}

test('probes are counted in one record for each window and path', async (t) => {
  const { audit } = settingsFrom({}, '.');
  const rest = await startRest({ settings: { audit: { ...audit, probeWindowMs: 250 } } });
  t.teardown(() => rest.close());
  const first = await rest.send('/health');
  const from = freshAddress();
  const more = await Promise.all(
    Array.from({ length: 99 }, (_, n) => rest.send('/health', { from, method: n % 2 ? 'GET' : 'HEAD' })),
  );
  t.ok(more.every(({ status }) => status === 200));
  for (const path of PATHS) t.equal((await rest.send(path)).status, 200, path);
  const ofHealth = async () => (await counted(rest)).filter((r) => r.action === 'health');
  await eventually(async () => (await ofHealth()).reduce((sum, r) => sum + (r.rows ?? 0), 0) === 100);
  await eventually(async () => new Set((await counted(rest)).map((r) => r.action)).size === ACTIONS.length);
  const [health, ...others] = await ofHealth();
  t.ok(others.length < 20, `${others.length} more for 100 requests`);
  t.match(health, {
    request_id: first.requestId,
    subject: 'anonymous',
    chain: [],
    surface: 'rest',
    decision: 'allow',
    objects: [],
  });
  for (const record of await counted(rest)) {
    const said = JSON.parse(record.detail ?? '{}');
    t.match(said, { path: /^\//, statuses: { 200: record.rows } });
    t.ok(said.since <= said.until && said.until <= record.ts);
    const line = new RegExp(
      `allow .* ${record.action} +anonymous {2}${record.rows} requests \\(200 × ${record.rows}\\)`,
    );
    t.match(recordLine(record), line);
  }
  t.match(await rest.test.verdict(), { integrity: 'intact', openDecisions: 0 });
  const before = (await counted(rest)).length;
  t.equal((await rest.send('/metrics', { headers: { via: '1.1 proxy' } })).status, 404);
  t.equal((await rest.send('/health', { method: 'POST' })).status, 405);
  t.equal((await counted(rest)).length, before, 'what is refused has a record of its own');
});

test('a service that stops records the window that is open', async (t) => {
  const rest = await startRest();
  t.teardown(() => rest.close());
  for (const path of ['/health', ...PATHS, '/health']) await rest.send(path);
  t.strictSame(await counted(rest), [], 'a window is a minute long');
  await rest.server.close(100);
  await rest.test.open.close();
  const rows = (await counted(rest)).map((r) => `${r.action} ${r.rows}`);
  t.strictSame(rows.sort(), ['health 2', 'mcp_metadata 1', 'metrics 1', 'openapi 1', 'ready 1']);
  t.match(await rest.test.verdict(), { integrity: 'intact', completeness: 'complete', openDecisions: 0 });
});
