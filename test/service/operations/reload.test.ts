import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import pg from 'pg';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { mintToken } from '../../../policy/index.js';
import { connectPg } from '../../support/pg-client.js';
import { nameServer, nativeOfRun, startTestService } from '../../support/service.js';
import { osl, type Server, temporary } from '../../tools/cli/support.js';
import { adminToken } from './store.js';
import { asked, logged, place, served, tokenFor } from './support.js';

const dir = temporary();
const ISSUERS = {
  old: generateKeyPairSync('rsa', { modulusLength: 2_048 }),
  next: generateKeyPairSync('rsa', { modulusLength: 2_048 }),
} as const;

const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();

function tokenOf(issuer: keyof typeof ISSUERS, kid?: string): Promise<string> {
  const claims = { tenant: 'demo', chain: ['user:analyst'], aclRoles: ['analyst'] };
  const { privateKey } = ISSUERS[issuer];
  return mintToken(claims, { algorithm: 'RS256', privateKey, ...(kid !== undefined && { kid }) });
}

async function statusOf(server: Server, token: string): Promise<number> {
  const authorization = `Bearer ${token}`;
  return (await asked(server, '/osl/query', { osql: 'select 1 as a' }, { authorization })).status;
}

/** A certificate for 127.0.0.1 and its key, by the name that it carries. */
function certify(name: string): void {
  const files = ['-keyout', join(dir, 'tls.key'), '-out', join(dir, 'tls.crt')];
  const kind = ['-newkey', 'rsa:2048', '-nodes', '-x509', '-days', '2', '-subj', `/CN=${name}`];
  execFileSync('openssl', ['req', ...kind, ...files], { stdio: 'ignore' });
}

/** The name in the certificate that a new connection of the wire is shown. */
function certificateName(server: Server): Promise<string> {
  const { pgPort } = server.record();
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port: Number(pgPort),
      rejectUnauthorized: false,
      ALPNProtocols: ['postgresql'],
    };
    const socket = connectTls(options, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

async function reloaded(server: Server): Promise<void> {
  const before = server.stderr.length;
  server.hangUp();
  while (!/^(?:not )?reloaded: /m.test(server.stderr.slice(before))) await sleep(20);
}

t.test('SIGHUP takes up all that can change, or names it', async (t) => {
  const where = place();
  const issuer = join(dir, 'issuer.pem');
  const lineage = join(dir, 'lineage.yaml');
  writeFileSync(issuer, pemOf(ISSUERS.old.publicKey));
  certify('first.example');
  const server = await served(t, where, {
    OSL_PUBLIC_KEYS: issuer,
    OSL_TLS_CERT: join(dir, 'tls.crt'),
    OSL_TLS_KEY: join(dir, 'tls.key'),
    OSL_HTTP_TLS: 'off',
    OSL_LOG_LEVEL: 'info',
    OSL_METRICS_FROM: '10.0.0.0/8',
    OSL_CORS_ORIGINS: 'https://app.example, http://localhost:5173',
  });
  const [old, oldNamed, next, local] = await Promise.all([
    tokenOf('old'),
    tokenOf('old', 'a-name-that-the-issuer-gave/2026+09='),
    tokenOf('next', 'k2'),
    tokenFor(where.dataDir),
  ]);
  t.equal(await statusOf(server, old), 200);
  t.equal(await statusOf(server, oldNamed), 200, 'a key without a name is tried for a token that names one');
  t.equal(await statusOf(server, next), 401);

  await t.test('a page of a listed origin may ask', async (t) => {
    const url = `http://127.0.0.1:${server.record().httpPort}/osl/query`;
    for (const [origin, allowed] of [
      ['http://localhost:5173', 'http://localhost:5173'],
      ['http://localhost', null],
    ] as const) {
      const headers = { origin, 'access-control-request-method': 'POST' };
      const reply = await fetch(url, { method: 'OPTIONS', headers });
      t.equal(reply.headers.get('access-control-allow-origin'), allowed);
    }
  });

  await t.test(
    "beside issuers the gateway's own key is good for nothing, and osl token says so",
    async (t) => {
      const authorization = `Bearer ${local}`;
      const reply = await asked(server, '/osl/query', { osql: 'select 1 as a' }, { authorization });
      t.equal(reply.status, 401);
      t.match(JSON.parse(reply.body), { code: 'E3001', detail: /accepted here: RS256$/ });
      t.match(server.stderr, /own key \(HS256\) are refused, unless OSL_LOCAL_TOKENS=on/);
      const minted = await osl(['token', '--data-dir', where.dataDir, '--subject', 'user:analyst']);
      t.match(minted, {
        code: 2,
        stdout: '',
        stderr: /takes tokens of its issuers alone.*OSL_LOCAL_TOKENS=on/,
      });
    },
  );

  const jwk = { ...ISSUERS.next.publicKey.export({ format: 'jwk' }), kid: 'k2', use: 'sig', alg: 'RS256' };
  writeFileSync(issuer, JSON.stringify({ keys: [{ kty: 'EC', crv: 'P-256', kid: 'other' }, jwk] }));
  certify('second.example');
  t.equal(await certificateName(server), 'first.example');
  await reloaded(server);
  t.equal(await statusOf(server, next), 200, 'a new key is accepted');
  t.equal(
    await statusOf(server, old),
    401,
    'one that was withdrawn is not, also where its token was verified before',
  );
  t.equal(await certificateName(server), 'second.example');
  t.match(server.stderr, /reloaded: manifest \w+, policy \w+; tokens by 1 of issuers;.* certificate until/);

  await t.test('where one thing has a fault all stays as it was', async (t) => {
    writeFileSync(issuer, 'no key');
    certify('third.example');
    await reloaded(server);
    t.match(server.stderr, /issuer\.pem holds no public key in PEM\n.*not reloaded/s);
    t.equal(await statusOf(server, next), 200);
    t.equal(await certificateName(server), 'second.example');
  });

  await t.test('every reload leaves a line and a record', async (t) => {
    t.match(
      logged(server).filter(({ msg }) => String(msg).includes('reloaded')),
      [
        { msg: 'reloaded' },
        { msg: 'not reloaded: what was served before is still served', why: 'StartProblem' },
      ],
    );
    await server.signal('SIGTERM');
    const details: unknown[] = [];
    for await (const record of readRecords(join(where.dataDir, 'audit')))
      if (record.action === 'service.reload') details.push(JSON.parse(record.detail ?? ''));
    t.match(details, [{ reloaded: true }, { reloaded: false, why: 'StartProblem' }]);
    t.notOk(JSON.stringify(details).includes('PEM'));
  });
  t.ok(lineage);
});

t.test(
  'a reload reaches databases as the manifest that it takes up says, and names another one',
  async (t) => {
    const postgres = await nativeOfRun();
    if (postgres === null) return;
    const shop = await startTestService({ postgres });
    t.teardown(async () => {
      await shop.close();
      await postgres.stop();
    });
    const manifest = join(dirname(shop.policyFile), 'manifest.yaml');
    const text = readFileSync(manifest, 'utf8');
    const [, variable = ''] = /url_env: (\w+)/.exec(text) ?? [];
    const [same, elsewhere] = [`${variable}_SAME`, `${variable}_ELSEWHERE`];
    nameServer(postgres, same);
    nameServer(postgres, elsewhere);
    const other = new URL(postgres.readerUrl);
    other.pathname = '/elsewhere';
    process.env[elsewhere] = other.href;
    for (const [name, told] of [
      [elsewhere, { kept: [/names another database: restart to change it/] }],
      [same, { now: [/^manifest/, /./, /by its URL of now/], kept: [] }],
    ] as const) {
      writeFileSync(manifest, text.replaceAll(`url_env: ${variable}`, `url_env: ${name}`));
      t.match(await shop.open.reload(), told, name);
    }
  },
);

t.test('with OSL_LOCAL_TOKENS=on both are good; the log holds no value of a question', async (t) => {
  const where = place();
  const issuer = join(dir, 'both.pem');
  writeFileSync(issuer, pemOf(createPublicKey(ISSUERS.old.privateKey)));
  const server = await served(t, where, { OSL_PUBLIC_KEYS: `mine=${issuer}`, OSL_LOCAL_TOKENS: 'on' });
  t.equal(await statusOf(server, await tokenFor(where.dataDir)), 200);
  t.equal(await statusOf(server, await tokenOf('old', 'mine')), 200);
  t.equal(
    await statusOf(server, await tokenOf('old', 'other')),
    401,
    'a key that has a name is for that name',
  );

  const client = await connectPg({
    port: server.record()['pgPort'],
    user: 'user:analyst',
    password: await tokenFor(where.dataDir),
  });
  const secret = 'geheim-4711';
  let failures = 0;
  for (const type of [
    'int4',
    'int8',
    'numeric',
    'float8',
    'bool',
    'date',
    'timestamptz',
    'interval',
    'uuid',
    'jsonb',
  ])
    await client.query(`select cast($1::text as ${type}) as v`, [secret]).catch(() => {
      failures += 1;
    });
  await client.end();
  const errors = logged(server).filter(({ msg }) => msg === 'upstream error');
  t.ok(errors.length >= 8, `${errors.length} of ${failures} were the upstream's`);
  t.notMatch(server.stderr, /geheim|4711/);
  t.ok(
    errors.some(({ message }) => message === 'invalid input syntax for type integer'),
    JSON.stringify(errors),
  );
});

t.test('iss and aud are those of the settings, as the contract asks', async (t) => {
  const where = place();
  const issuer = join(dir, 'audience.pem');
  writeFileSync(issuer, pemOf(ISSUERS.old.publicKey));
  const server = await served(t, where, {
    OSL_PUBLIC_KEYS: issuer,
    OSL_LOCAL_TOKENS: 'on',
    OSL_TOKEN_ISSUERS: 'https://idp.example,https://old-idp.example',
    OSL_TOKEN_AUDIENCES: 'osl,bi',
    OSL_AUDIT_ARCHIVE: '/nope',
    OSL_AUDIT_RETENTION_DAYS: '400',
  });
  t.match(
    logged(server),
    [{ msg: /cannot be archived, and stay/, cause: /^OSL_AUDIT_ARCHIVE: \/nope cannot be written to/ }],
    'an archive that is away is told of at the start, and ends nothing',
  );
  const claims = { tenant: 'demo', chain: ['user:analyst'], aclRoles: ['analyst'] };
  const { privateKey } = ISSUERS.old;
  const status = async (more: { issuer?: string; audience?: string }): Promise<number> =>
    statusOf(server, await mintToken({ ...claims, ...more }, { algorithm: 'RS256', privateKey }));
  const issuerName = 'https://idp.example';
  t.equal(await status({ issuer: issuerName, audience: 'osl' }), 200);
  t.equal(await status({ issuer: 'https://old-idp.example', audience: 'bi' }), 200, 'any of the lists');
  t.equal(await status({ issuer: issuerName }), 401, 'an audience is required where one is configured');
  t.equal(await status({ issuer: issuerName, audience: 'another service' }), 401);
  t.equal(await status({ audience: 'osl' }), 401, 'the default issuer is none of the list');
  t.equal(await status({ issuer: 'https://evil.example', audience: 'osl' }), 401);
  const question = ['query', '--data-dir', where.dataDir, '--subject', 'user:analyst', 'select 1 as one'];
  t.match(
    await osl(question),
    { code: 0, stdout: /one/ },
    'the tokens of the command name what its server asks for',
  );
});

/** What each surface says to somebody with a good token: status and code, SQLSTATE and code. */
async function saidEverywhere(server: Server, token: string): Promise<Readonly<Record<string, unknown>>> {
  const authorization = `Bearer ${token}`;
  const told = async (path: string, body: unknown = null): Promise<string> => {
    const { status, body: text } = await asked(server, path, body, { authorization });
    return `${status} ${/E\d{4}/.exec(text)?.[0] ?? 'no code'}`;
  };
  const tool = { name: 'semantic_query', arguments: { osql: 'select 1 as a' } };
  const mcp = await asked(
    server,
    '/mcp',
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: tool },
    { authorization, accept: 'application/json, text/event-stream' },
  );
  return {
    query: await told('/osl/query', { osql: 'select 1 as a' }),
    explain: await told('/osl/query', { osql: 'select 1 as a', explain: true }),
    sql: await told('/osl/query', { sql: 'select 1 as a' }),
    sample: await told('/osl/sample', { kind: 'table', name: 'package' }),
    schema: await told('/osl/schema?governed=true'),
    map: await told('/osl/domain-map?governed=true'),
    conformance: await told('/osl/conformance'),
    mcp: /E\d{4}/.exec(mcp.body)?.[0] ?? 'no code',
    wire: await wireRefusal(server, 'user:analyst', token),
    account: await wireRefusal(server, 'nobody_knows_whether', 'a password'),
  };
}

const EVERYWHERE_E2001 = {
  query: '503 E2001',
  explain: '503 E2001',
  sql: '503 E2001',
  sample: '503 E2001',
  schema: '503 E2001',
  map: '503 E2001',
  conformance: '503 E2001',
  mcp: 'E2001',
  wire: '57P03 E2001',
  account: '57P03 E2001',
};

async function wireRefusal(server: Server, user: string, password: string): Promise<string> {
  const client = wireClient(server, user, password);
  try {
    await client.connect();
    await client.end();
    return 'let in';
  } catch (error) {
    return wireWords(error);
  }
}

function wireWords(error: unknown): string {
  const { code, detail } = error as { code?: string; detail?: string }; // what pg makes of an ErrorResponse
  return `${code} ${/E\d{4}/.exec(detail ?? '')?.[0] ?? 'no code'}`;
}

function wireClient(server: Server, user: string, password: string): pg.Client {
  const port = Number(server.record()['pgPort']);
  const client = new pg.Client({ host: '127.0.0.1', port, user, password, database: 'osl' });
  client.on('error', () => undefined);
  return client;
}

interface Ready {
  readonly status: string;
  readonly checks: { readonly policy: boolean };
  readonly kept_policy?: { readonly since: string; readonly until: string };
}

async function readiness(server: Server): Promise<Ready> {
  return JSON.parse((await asked(server, '/ready')).body) as Ready; // the members that are looked at
}

t.test('without a valid policy every surface answers 503 E2001 until a reload brings one', async (t) => {
  const where = place();
  const good = readFileSync(where.policy, 'utf8');
  const manifest = readFileSync(where.manifest, 'utf8');
  const whole = t;
  let server = await served(whole, where, { OSL_POLICY_KEEP_SECONDS: '0' });
  const token = await tokenFor(where.dataDir);
  const open = wireClient(server, 'user:analyst', token);
  await open.connect();
  t.match((await open.query('select 1 as a')).rows, [{ a: 1 }]);

  for (const [what, spoil] of [
    ['a policy that is missing', () => rmSync(where.policy)],
    ['no YAML', () => writeFileSync(where.policy, 'roles: [')],
    ['another shape', () => writeFileSync(where.policy, good.replace('roles:\n', 'rolls:\n'))],
    [
      'a name that is not declared',
      () => writeFileSync(where.policy, good.replace('ceiling: [analyst]', 'ceiling: [analist]')),
    ],
  ] as const)
    await t.test(`at a reload: ${what}`, async (t) => {
      spoil();
      await reloaded(server);
      t.strictSame(await saidEverywhere(server, token), EVERYWHERE_E2001);
      t.equal(await open.query('select 1 as a').catch(wireWords), '57P03 E2001', 'a session that is open');
      t.equal((await asked(server, '/health')).status, 200);
      t.match(await readiness(server), { status: 'not_ready', checks: { policy: false } });
      t.match((await asked(server, '/metrics')).body, /^osl_policy_loaded 0$/m);
      writeFileSync(where.policy, good);
      await reloaded(server);
      t.equal(await statusOf(server, token), 200);
      t.match((await open.query('select 1 as a')).rows, [{ a: 1 }]);
      t.match((await asked(server, '/metrics')).body, /^osl_policy_loaded 1$/m);
    });

  await t.test('a fault of the manifest changes nothing', async (t) => {
    writeFileSync(where.manifest, 'version: 1\n');
    await reloaded(server);
    t.equal(await statusOf(server, token), 200);
    t.match(server.stderr, /not reloaded: what was served before is still served/);
    writeFileSync(where.manifest, manifest);
  });
  await open.end();

  await t.test('at start: it runs, answers /health, and is not ready until SIGHUP', async (t) => {
    await server.signal('SIGTERM');
    writeFileSync(where.policy, 'roles: [');
    server = await served(whole, where);
    t.match(server.stderr, /policy\.yaml:\d+:\d+: error M\d+/, 'what is wrong, and where');
    t.strictSame(await saidEverywhere(server, token), EVERYWHERE_E2001);
    const command = ['query', '--data-dir', where.dataDir, '--token', token, 'select 1 as a'];
    t.match(await osl(command), { code: 1, stderr: /E2001/ });
    t.equal((await asked(server, '/osl/query', { osql: 'select 1' })).status, 403, 'without a token as ever');
    t.equal(await statusOf(server, `${token}x`), 401, 'with a wrong one too');
    t.equal((await asked(server, '/health')).status, 200);
    t.match(await readiness(server), { status: 'not_ready', checks: { policy: false, audit: true } });
    writeFileSync(where.policy, good);
    await reloaded(server);
    t.equal(await statusOf(server, token), 200);
    t.match(await readiness(server), { status: 'ready' });
  });

  await t.test('where no server ever began, nothing tells whose it is: the start fails', async (t) => {
    const nobodys = join(dir, 'nobodys.yaml');
    writeFileSync(nobodys, manifest.replace(/^tenant: .*\n/m, ''));
    const args = ['serve', '--manifest', nobodys, '--policy', join(dir, 'no-such.yaml')];
    t.match(await osl([...args, '--data-dir', join(dir, 'fresh'), '--http-port', '0', '--pg-port', '0']), {
      code: 2,
      stderr: /no-such\.yaml/,
    });
  });

  await t.test('all of it is on record', async (t) => {
    await server.signal('SIGTERM');
    const found: unknown[] = [];
    let refusals = 0;
    for await (const record of readRecords(join(where.dataDir, 'audit'))) {
      if (record.action === 'service.policy' || record.action === 'service.reload')
        found.push(JSON.parse(record.detail ?? ''));
      if (record.code === 'E2001') refusals += 1;
    }
    t.match(
      found.filter((detail) => JSON.stringify(detail).includes('missing')),
      [...Array(4).fill({ reloaded: false, why: 'PolicyFault', policy: 'missing' }), { state: 'missing' }],
    );
    t.ok(refusals >= 40, `${refusals} refusals`);
  });
});

/** Answered without a token, so they must not name a path of the machine. */
const OPEN_PATHS = ['/health', '/ready', '/metrics'];

t.test('the last valid policy stays in force for OSL_POLICY_KEEP_SECONDS and no longer', async (t) => {
  const where = place();
  const good = readFileSync(where.policy, 'utf8');
  const env = { OSL_POLICY_WATCH: 'on', OSL_POLICY_KEEP_SECONDS: '10', OSL_ADMIN_PORT: '0' };
  const server = await served(t, where, env);
  const token = await tokenFor(where.dataDir);
  const figures = async (): Promise<Readonly<Record<string, number>>> => {
    const { body } = await asked(server, '/metrics');
    const lines = [...body.matchAll(/^(osl_policy_\w+) (\S+)$/gm)];
    return Object.fromEntries(lines.map(([, name, value]) => [name, Number(value)]));
  };
  /** `policy_fault` of the admin listener. */
  const toldAdmins = async (): Promise<unknown> => {
    const authorization = `Bearer ${await adminToken(where)}`;
    const url = `http://127.0.0.1:${server.record()['adminPort']}/admin/standing`;
    const { processes } = JSON.parse(await (await fetch(url, { headers: { authorization } })).text());
    return processes[0].policy_fault;
  };
  t.match(await figures(), { osl_policy_loaded: 1, osl_policy_kept_seconds: 0 });
  t.equal(await toldAdmins(), null);

  await t.test('an editor that saves by renaming takes nothing out of service', async (t) => {
    const answers = new Set<number>();
    for (let save = 0; save < 12; save += 1) {
      const text = `${good}# ${save}\n`;
      if (save % 2 === 0) {
        // As vim: the file is away until the new one is written.
        renameSync(where.policy, `${where.policy}~`);
        writeFileSync(where.policy, text);
      } else {
        writeFileSync(`${where.policy}.new`, text);
        renameSync(`${where.policy}.new`, where.policy);
      }
      for (let ask = 0; ask < 5; ask += 1) answers.add(await statusOf(server, token));
      await sleep(100);
    }
    t.strictSame([...answers], [200]);
  });

  await t.test(
    'a typo in a watched file is told of where operators look, and ends with its correction',
    async (t) => {
      writeFileSync(where.policy, good.replace('roles:\n', 'rolls:\n'));
      const before = server.stderr.length;
      while (!server.stderr.slice(before).includes('the last valid one stays in force')) await sleep(20);
      t.match(
        logged(server).findLast(({ msg }) => String(msg).includes('the last valid one')),
        { cause: /policy\.yaml:\d+:\d+: error M\d+ the file has no `roles`/ },
      );
      t.equal(await statusOf(server, token), 200);
      t.match(JSON.parse((await asked(server, '/health')).body), {
        status: 'degraded',
        kept_policy: { seconds_left: Number },
      });
      t.match(await toldAdmins(), /policy\.yaml:\d+:\d+: error M\d+ the file has no `roles`/);
      for (const path of OPEN_PATHS)
        t.notMatch((await asked(server, path)).body, dirname(where.policy), path);
      t.match(await figures(), { osl_policy_loaded: 1 });
      t.ok(((await figures())['osl_policy_kept_seconds'] ?? 0) > 0);
      writeFileSync(where.policy, good);
      await server.said('a valid policy is in force again');
      t.match(JSON.parse((await asked(server, '/health')).body), { status: 'ok' });
      t.match(await figures(), { osl_policy_loaded: 1, osl_policy_kept_seconds: 0 });
    },
  );

  await t.test(
    'a signal goes by the same rule; its time is not prolonged, and then all is refused',
    async (t) => {
      rmSync(where.policy);
      await reloaded(server);
      t.match(server.stderr, /not reloaded: the last valid policy stays in force until 20/);
      const { kept_policy: kept, status } = await readiness(server);
      t.equal(status, 'ready');
      t.equal(Date.parse(kept?.until ?? '') - Date.parse(kept?.since ?? ''), 10_000);
      t.equal(await statusOf(server, token), 200);
      await reloaded(server);
      t.match(
        await readiness(server),
        { kept_policy: kept },
        'another reload that fails does not prolong it',
      );
      await server.said('OSL_POLICY_KEEP_SECONDS are over');
      t.ok(Date.now() >= Date.parse(kept?.until ?? ''));
      t.equal(await statusOf(server, token), 503);
      t.match(await readiness(server), { status: 'not_ready', checks: { policy: false } });
      t.notOk((await readiness(server)).kept_policy);
      await reloaded(server);
      t.equal(await statusOf(server, token), 503, 'what has ended is not kept again');
      t.match(server.stderr, /not reloaded: every request is refused \(E2001\) until/);
      writeFileSync(where.policy, good);
      while ((await statusOf(server, token)) !== 200) await sleep(50);
      t.match(await readiness(server), { status: 'ready' });
    },
  );
});
