import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { checkProof, readRecords } from '../../../audit/index.js';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { startAuditTable } from '../../support/audit-table.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { partOf } from '../../support/part.js';
import { osl, type Server } from '../../tools/cli/support.js';
import { checkedListener, listIn, type Members } from './admin-listener.js';
import { adminToken, files, TABLES } from './store.js';
import { asked, type Place, served, tokenFor } from './support.js';

/** What an admin is told of policy, audit log and figures by a server that runs; of one process, of two, and over a table. */

t.setTimeout(180_000);

const POLICY = `version: 1
tenant: demo
subjects:
  user:analyst: { ceiling: [analyst] }
  user:admin: { ceiling: [analyst, auditor], admin: [TENANT_ADMIN] }
  user:guest: { ceiling: [] }
  agent:helper: { ceiling: [analyst] }
roles:
  analyst:
    grants:
      - { on: account, columns: [id, name] }
  auditor:
    grants:
      - { on: big, columns: [id] }
masks: {}
limits:
  query: 1000
  catalog: 1000
  authoring: 1000
  subject: [{ per: hour, rows: 100000 }]
  tenant: [{ per: day, requests: 50000 }]
`;

const TESTS = `version: 1
data:
  db.shop.account: [{ id: 1, name: ann }]
tests:
  - name: analysts see names
    as: user:analyst
    ask: select name from osl.entities.account
    expect: { rows: [{ name: ann }] }
claims:
  - name: analysts never see the big one
    never: { role: analyst, sees: big }
  - name: auditors never see it either
    never: { role: auditor, sees: big }
`;

const PATHS = [
  '/admin/matrix',
  '/admin/access-requests',
  '/admin/policy/tests',
  '/admin/audit/records',
  '/admin/audit/requests/{id}',
  '/admin/audit/requests/{id}/proofs',
  '/admin/audit/verification',
  '/admin/figures',
  '/admin/limits',
  '/admin/freshness',
] as const;
const JOBS = ['/admin/audit/verification', '/admin/policy/tests'] as const;

const postgres = await startNativePostgres();
const table = await startAuditTable();
if (postgres === null || table === null) {
  t.test('what an admin is told', { skip: NO_NATIVE }, async () => undefined);
} else {
  t.teardown(() => postgres.stop());
  t.teardown(() => table.stop());
  const { Client } = await import('pg').then(({ default: pg }) => pg);
  const owner = new Client(postgres.url);
  await owner.connect();
  await owner.query(TABLES);
  await owner.end();
  const base = { STORE_URL: postgres.readerUrl, OSL_ADMIN_PORT: '0' };
  const sink = { OSL_AUDIT_SINK: 'postgres', OSL_AUDIT_URL: table.gatewayUrl };
  const ways: readonly (readonly [name: string, env: Readonly<Record<string, string>>])[] = [
    ['one process', { OSL_WORKERS: '1' }],
    ['two workers', { OSL_WORKERS: '2' }],
    ['two workers whose log is a table', { OSL_WORKERS: '2', ...sink }],
  ];
  for (const [name, env] of partOf('what an admin is told', ways, 3))
    await t.test(name, async (t) => {
      const place = files();
      writeFileSync(place.policy, POLICY);
      writeFileSync(join(dirname(place.policy), 'policy.test.yaml'), TESTS);
      const server = await served(t, place, { ...base, ...env });
      await ofServer(t, server, place, 'OSL_AUDIT_SINK' in env);
      server.signal('SIGTERM');
      t.match(await server.ended, { code: 0 });
    });
}

async function ofServer(t: Test, server: Server, place: Place, inTable: boolean): Promise<void> {
  const admin = await adminToken(place);
  const analyst = await tokenFor(place.dataDir);
  const { openapi, ask } = await checkedListener(server);
  const get = (path: string, token: string | null = admin) => ask('get', path, token);
  const post = (path: string, token: string | null = admin) => ask('post', path, token);
  const query = (osql: string, token = analyst) =>
    asked(server, '/osl/query', { osql }, { authorization: `Bearer ${token}` });
  const ids: string[] = [];
  for (let i = 0; i < 6; i += 1) {
    const { headers } = await query('select name from osl.entities.account');
    ids.push(String(headers['x-request-id']));
  }
  const refused = await query('select id from osl.entities.big');
  t.equal(refused.status, 400);
  t.equal((await query('select id from a_name_of_none')).status, 400);

  await t.test('nobody but an admin hears anything, an agent for an admin neither', async (t) => {
    const { signing } = tenantKeys(place.dataDir);
    const agent = await mintToken(
      {
        tenant: 'demo',
        chain: ['user:admin', 'agent:helper'],
        aclRoles: ['analyst'],
        roles: ['TENANT_ADMIN'],
      },
      { algorithm: 'HS256', secret: signing },
    );
    for (const path of PATHS) {
      const real = path.replace('{id}', ids[0] ?? '');
      for (const token of [analyst, agent])
        t.match(await get(real, token), { status: 403, body: { code: 'E2101' } }, path);
    }
    for (const path of JOBS) t.match(await post(path, agent), { status: 403, body: { code: 'E2101' } }, path);
    t.match(await get('/admin/matrix', null), { status: 403, body: { code: 'E2102' } });
    t.match(await get('/admin/matrix', 'x'), { status: 401 });
    t.match(
      await asked(server, '/admin/matrix', null, { authorization: `Bearer ${admin}` }),
      { status: 404 },
      'the listener for questions knows nothing of it',
    );
    t.match(await get('/admin/audit/verification'), { body: { state: 'never' } }, 'none of them began it');
  });

  await t.test('what cannot be read is refused, and said so', async (t) => {
    for (const path of [
      '/admin/matrix?subjects=0',
      '/admin/matrix?sees=everything',
      '/admin/matrix?nonsense=1',
      '/admin/matrix?chain=a,a',
      '/admin/audit/records?since=yesterday',
      '/admin/audit/records?from=bm9uc2Vuc2U',
      '/admin/audit/records?most=1000',
      '/admin/audit/records?decision=maybe',
    ])
      t.match(await get(path), { status: 400, body: { code: 'E0511' } }, path);
    t.match(await get("/admin/audit/requests/1'or'1"), { status: 404 });
  });

  await t.test('the matrix is what explain-access says of each', async (t) => {
    const { body } = await get('/admin/matrix?chain=user:analyst,agent:helper');
    const subjects = body['subjects'] as readonly (readonly string[])[];
    t.strictSame(
      subjects.map((chain) => chain.join('>')),
      ['user:analyst>agent:helper', 'agent:helper', 'user:admin', 'user:analyst', 'user:guest'],
    );
    const rows = listIn(body, 'rows');
    t.strictSame(
      rows.map(({ object, column, sees }) => [object, column, sees]),
      [
        ['osl.entities.account', 'id', ['clear', 'clear', 'clear', 'clear', 'nothing']],
        ['osl.entities.account', 'name', ['clear', 'clear', 'clear', 'clear', 'nothing']],
        ['osl.entities.big', 'id', ['nothing', 'nothing', 'clear', 'nothing', 'nothing']],
      ],
    );
    for (const { object, column, sees } of rows)
      for (const [i, chain] of subjects.entries()) {
        const question = { object: `${object}.${column}`, chain };
        const headers = { authorization: `Bearer ${admin}` };
        const explained = await asked(server, '/osl/access/explain', question, headers);
        t.equal(JSON.parse(explained.body).sees, (sees as readonly string[])[i], question.object);
      }
    const page = await get('/admin/matrix?object=BIG&sees=clear&subjects=1&rows=1');
    t.match(page.body, { subjects: [['user:admin']], row_count: 1, subject_count: 4 });
    const first = await get('/admin/matrix?subjects=3&from=1&rows=1');
    t.match(first.body, { next_subject: 'user:analyst', row_count: 3, rows: [{ column: 'name' }] });
    t.match(
      (await get(`/admin/matrix?after=${first.body['next_subject']}`)).body,
      { subjects: [['user:guest']], next_subject: null },
      'the next page goes on behind it',
    );
  });

  await t.test('records are found, each once, the newest first', async (t) => {
    const found: string[] = [];
    let from: unknown = '';
    do {
      const { body } = await get(
        `/admin/audit/records?subject=user:analyst&object=account&kind=decision&decision=allow&most=2&from=${from}`,
      );
      found.push(...listIn(body, 'records').map((r) => String(r['request_id'])));
      from = body['next'];
    } while (from !== null && found.length < 50);
    t.strictSame([...found].sort(), [...ids].sort());
    t.equal(new Set(found).size, found.length);
    const denied = await get('/admin/audit/records?subject=user:analyst&code=E2101');
    t.ok(listIn(denied.body, 'records').every((r) => r['subject'] === 'user:analyst'));
    const story = await until(async () => {
      const { body } = await get(`/admin/audit/requests/${ids[3]}?near=${new Date().toISOString()}`);
      return listIn(body, 'records').length === 2 ? body : null;
    });
    t.match(listIn(story, 'records'), [
      { kind: 'decision', decision: 'allow', objects: ['osl.entities.account'] },
      { kind: 'outcome', outcome: 'ok', rows: 2 },
    ]);
    const named = await get('/admin/audit/records?name=a_name_of_none');
    t.match(listIn(named.body, 'records'), [{ subject: 'user:analyst', decision: 'error', code: 'E0512' }]);
    const looked = await get('/admin/audit/records?action=audit.read&most=5');
    t.notMatch(JSON.stringify(looked.body), /a_name_of_none/, 'who looks for a name does not write it down');
    const reading = await get('/admin/audit/records?action=audit.read&most=1');
    t.match(listIn(reading.body, 'records')[0], { subject: 'user:admin', detail: /"command":"search"/ });
  });

  await t.test('a proof of a record, that osl audit check and the key alone confirm', async (t) => {
    const proofs = await until(async () => {
      const { body } = await get(`/admin/audit/requests/${ids[0]}/proofs`);
      return listIn(body, 'proofs').length === 2 ? listIn(body, 'proofs') : null;
    });
    for (const { text, verifier_key } of proofs) {
      const verdict = checkProof(String(text), String(verifier_key));
      t.match(verdict, { ok: true, record: { request_id: ids[0] } });
    }
    const file = join(dirname(place.policy), 'proof.txt');
    writeFileSync(file, proofs.map(({ text }) => text).join(''));
    const key = join(dirname(place.policy), 'key');
    writeFileSync(key, `${proofs[0]?.['verifier_key']}\n`);
    t.match(await osl(['audit', 'check', file, '--key', key]), { code: 0, stdout: /is in osl-audit/ });
    t.match(await get('/admin/audit/requests/none-such/proofs'), { status: 200, body: { proofs: [] } });
  });

  await t.test('verify is a job: one at a time, with what came of it, by whichever worker', async (t) => {
    const begun = await Promise.all([post('/admin/audit/verification'), post('/admin/audit/verification')]);
    t.equal(begun[0].body['began_at'], begun[1].body['began_at'], 'the second finds the first');
    const done = await until(async () => {
      const { body } = await get('/admin/audit/verification');
      return body['state'] === 'running' ? null : body;
    });
    t.match(done, { state: 'done', by: 'user:admin', result: { ok: true } });
    const chains = listIn(done['result'] as Members, 'chains');
    t.ok(chains.length > 0);
    for (const chain of chains) t.match(chain, { integrity: 'intact', completeness: 'complete' });
    if (inTable) return;
    const { recovered } = await flipped(place, async () => {
      await post('/admin/audit/verification');
      return until(async () => {
        const { body } = await get('/admin/audit/verification');
        return body['state'] === 'running' ? null : { recovered: body };
      });
    });
    t.match(recovered, { state: 'done', result: { ok: false } }, 'a flipped byte is found');
  });

  await t.test(
    'the tests of the policy run and say which rules they hold, and its claims are decided',
    async (t) => {
      t.match((await get('/admin/policy/tests')).body, { state: 'never' });
      t.match(await post('/admin/policy/tests'), { status: 200 });
      const done = await until(async () => {
        const { body } = await get('/admin/policy/tests');
        return body['state'] === 'running' ? null : body;
      });
      t.match(done, {
        state: 'done',
        result: {
          ok: false,
          results: [{ name: 'analysts see names', ok: true }],
          coverage: { changes: 2, held: 1, unheld: [{ rule: 'roles.auditor.grants[0]' }] },
          claims: [
            { name: 'analysts never see the big one', verdict: 'proved', shows: [] },
            {
              name: 'auditors never see it either',
              verdict: 'refuted',
              shows: ['auditor sees big', /^row of big: /, 'caller with auditor'],
            },
          ],
        },
      });
      const { body } = await get('/admin/freshness');
      t.equal(
        (body['versions'] as Members)['policy'],
        Object((done['result'] as Members)['tested'])['policy'],
      );
    },
  );

  await t.test('requests for access, with the grant that would be given', async (t) => {
    const ask = { object: 'osl.entities.big.id', reason: 'to count them' };
    const sent = await asked(server, '/osl/access-requests', ask, { authorization: `Bearer ${analyst}` });
    t.equal(sent.status, 200);
    const unknown = { ...ask, object: 'osl.entities.secret' };
    await asked(server, '/osl/access-requests', unknown, { authorization: `Bearer ${analyst}` });
    const { body } = await get('/admin/access-requests');
    t.match(listIn(body, 'requests'), [
      { subject: 'user:analyst', object: null, offer: null },
      {
        subject: 'user:analyst',
        object: 'osl.entities.big.id',
        offer: {
          declared: true,
          sees: 'nothing',
          roles: [{ role: 'auditor', sees: 'clear' }],
          grant: { on: 'big', columns: ['id'] },
        },
      },
    ]);
    t.notMatch(JSON.stringify(body), /to count them|secret/, 'the log has neither reason nor unknown name');
  });

  await t.test('figures, limits and freshness of all processes', async (t) => {
    const { body } = await get('/admin/figures');
    const structured = listIn(body, 'latency').filter((l) => l['form'] === 'structured');
    t.equal(
      structured.reduce((sum, l) => sum + Number(l['count']), 0),
      6,
      'each question once',
    );
    t.match(listIn(structured[0] ?? {}, 'buckets').at(-1), { le: null, count: structured[0]?.['count'] });
    t.ok(listIn(body, 'refusals').some((r) => r['code'] === 'E2101'));
    const told = await until(async () => {
      const { body: now } = await get('/admin/limits?subject=user:analyst');
      return listIn(now, 'quotas').some((q) => q['each'] === 'subject' && q['used'] === 12) ? now : null;
    });
    t.match(listIn(told, 'quotas'), [
      { unit: 'rows', each: 'subject', most: 100000, used: 12, window_seconds: 3600 },
      { unit: 'requests', each: null, most: 50000, used: Number },
    ]);
    t.match((await get('/admin/limits')).body, { quotas: [{ used: null }, { used: Number }] });
    t.match((await get('/admin/freshness')).body, {
      indexes: [],
      rollups: [],
      published: null,
      activation: null,
    });
  });

  await t.test('every answer was of the shape that the document states', (t) => {
    t.strictSame(openapi.faults, []);
    const all = [...PATHS.map((path) => `get ${path}`), ...JOBS.map((path) => `post ${path}`)];
    t.strictSame([...openapi.checked].sort(), all.sort());
    t.end();
  });
}

/** Does `work` while a byte of the server's first chain is another one. */
async function flipped<T>({ dataDir }: Place, work: () => Promise<T>): Promise<T> {
  const file = join(dataDir, 'audit', 'segment-00000001.log');
  let at = 0;
  for await (const _ of readRecords(dirname(file))) at += 1;
  const bytes = readFileSync(file);
  const place = bytes.indexOf('"request_id"') + 4;
  if (at === 0 || place < 4) throw new Error('there is no record to change');
  bytes[place] = (bytes[place] ?? 0) ^ 1;
  const { openSync, writeSync, closeSync } = await import('node:fs');
  const flip = (): void => {
    const fd = openSync(file, 'r+');
    writeSync(fd, bytes, place, 1, place);
    closeSync(fd);
  };
  flip();
  try {
    return await work();
  } finally {
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    flip();
  }
}

async function until<T>(look: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    await sleep(50);
  }
}
