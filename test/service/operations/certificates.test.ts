import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { authority, type Pair } from '../../support/authority.js';
import { type Server, temporary } from '../../tools/cli/support.js';
import { ACCOUNTS, ACCOUNTS_MANIFEST, files, openStore } from './store.js';
import { type Reply, replyTo, served, tokenFor } from './support.js';

/** Client certificates in the place of tokens, over REST, MCP and the wire of `osl serve`, from outside. */

const corp = authority('/O=Corp/CN=Corp Root');
const next = authority('/O=Corp/CN=Next Root');
const foreign = authority('/O=Corp/CN=Corp Root');
t.teardown(() => {
  for (const one of [corp, next, foreign]) one.end();
});
const SERVER = corp.issue({
  subject: '/CN=localhost',
  names: 'DNS:localhost,IP:127.0.0.1',
  usage: 'serverAuth',
});
const MARIA = { subject: '/O=Corp/OU=People/CN=maria', usage: 'clientAuth' } as const;
const PAIRS = {
  maria: corp.issue(MARIA),
  scout: corp.issue({ subject: '/CN=scout', names: 'URI:spiffe://corp/scout,DNS:Scout.Corp.Example' }),
  both: corp.issue({ subject: '/O=Corp/OU=People/CN=maria', names: 'URI:spiffe://corp/scout' }),
  unknown: corp.issue({ subject: '/CN=nobody' }),
  twoNames: corp.issue({ subject: '/CN=scout/CN=dash' }),
  comma: corp.issue({ subject: '/CN=x', names: 'URI:spiffe://corp/x' }),
  ended: corp.issue({ ...MARIA, days: -1 }),
  ofServer: corp.issue({ ...MARIA, usage: 'serverAuth' }),
  forged: foreign.issue(MARIA),
  renewed: next.issue(MARIA),
} as const;

const policy = (rules: string): string => `version: 1
tenant: demo
subjects:
  user:maria: { ceiling: [reader, other] }
  agent:scout: { ceiling: [reader, other] }
  user:analyst: { ceiling: [analyst] }
roles:
  reader: { grants: [{ on: account, columns: [id] }] }
  other: { grants: [{ on: account, columns: [id, name] }] }
  analyst: { grants: [{ on: account, columns: [id] }] }
masks: {}
limits: { query: 100000, catalog: 100000 }
certificates:
${rules}
`;
const RULES = `  people: { subject: user:maria, dn: 'CN=maria,OU=People,O=Corp', issuer: 'CN=Corp Root,O=Corp', acl_roles: [reader] }
  scout: { subject: agent:scout, uri: 'spiffe://corp/scout', dns: scout.corp.example }
  loose: { subject: agent:scout, uri: 'spiffe://corp/scout', cn: maria }
  dash: { subject: agent:scout, cn: dash }`;

const NAMES = 'select name from osl.entities.account';
const IDS = 'select id from osl.entities.account order by id';

const store = await openStore(t, 'client certificates', ACCOUNTS);
if (store !== null) {
  const { postgres } = store;

  const where = files(ACCOUNTS_MANIFEST, policy(RULES));
  const dir = temporary();
  const file = (name: string, content: string): string => {
    writeFileSync(join(dir, name), content);
    return join(dir, name);
  };
  const env = {
    STORE_URL: postgres.readerUrl,
    OSL_TLS_CERT: file('server.crt', SERVER.cert),
    OSL_TLS_KEY: file('server.key', SERVER.key),
    OSL_TLS_CLIENT_CA: file('clients.crt', corp.ca),
    OSL_TLS_WATCH_SECONDS: '0',
  };
  const server = await served(t, where, env);
  const rest = (pair: Pair | null, osql: string, more: Parameters<typeof ask>[3] = {}) =>
    ask(server, pair, osql, more);

  const wire = async (pair: Pair | null, user: string, password?: string): Promise<pg.Client> => {
    const ssl = { ca: corp.ca, servername: 'localhost', ...pair };
    const { pgPort } = server.record();
    const at = { host: '127.0.0.1', port: Number(pgPort), database: 'osl', user, ssl };
    const client = new pg.Client({ ...at, ...(password !== undefined && { password }) });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };

  await t.test('a certificate is its subject over REST, MCP and the wire, below its ceiling', async (t) => {
    t.match(await rest(PAIRS.maria, IDS), { status: 200, body: /"rows":\[\{"id":1\},\{"id":2\}\]/ });
    t.match(
      await rest(PAIRS.maria, NAMES),
      { status: 400, body: /E0512/ },
      'the rule claims one role of two',
    );
    t.match(await rest(PAIRS.scout, NAMES), { status: 200, body: /ann/ }, 'by a URI and a DNS name');
    const maria = await wire(PAIRS.maria, 'user:maria');
    t.same((await maria.query(IDS)).rows, [{ id: 1 }, { id: 2 }]);
    await t.rejects(maria.query(NAMES), { code: '42703' });
    for (let i = 0; i < 5; i++)
      t.same((await maria.query(IDS)).rowCount, 2, 'and again, as often as it asks');
    await maria.end();
    const said = await psql({
      PGHOST: '127.0.0.1',
      PGPORT: String(server.record().pgPort),
      PGUSER: 'user:maria',
    });
    t.equal(said, '1\n2\n', 'psql');
    const tools = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    t.match(await ask(server, PAIRS.maria, '', { path: '/mcp', body: tools }), { status: 200 });
    t.match(await ask(server, null, '', { path: '/mcp', body: tools }), { status: 401 });
  });

  await t.test('who it is not', async (t) => {
    for (const [name, status, said] of [
      ['unknown', 401, /E3001.*no rule of the policy is for it alone/],
      ['both', 401, /no rule of the policy is for it alone/],
      ['twoNames', 401, /no rule/],
      ['ended', 401, /expired, revoked, untrusted, or not for clients/],
      ['ofServer', 401, /expired, revoked, untrusted, or not for clients/],
      ['forged', 401, /expired, revoked, untrusted, or not for clients/],
    ] as const)
      t.match(await rest(PAIRS[name], IDS), { status, body: said }, name);
    t.match(await rest(null, IDS), { status: 403, body: /E2102/ }, 'no certificate, no token');
    for (const name of ['ended', 'ofServer', 'forged'] as const)
      await t.rejects(wire(PAIRS[name], 'user:maria', 'x'), /the client certificate is not valid/, name);
    // pg has no password to send, so it ends itself when it is asked for one.
    for (const [name, user] of [
      ['unknown', 'user:maria'],
      ['both', 'user:maria'],
      ['maria', 'agent:scout'],
      ['maria', 'people'],
    ] as const)
      await t.rejects(wire(PAIRS[name], user, 'no token'), { code: '28000' }, `${name} as ${user}`);
  });

  await t.test('a token goes before the certificate, also a broken one', async (t) => {
    const token = await tokenFor(where.dataDir);
    t.match(await rest(PAIRS.scout, NAMES, { token }), { status: 400, body: /E0512/ }, "the token's rights");
    t.match(await rest(PAIRS.scout, NAMES, { token: 'broken' }), { status: 401, body: /E3001/ });
    t.match(await rest(PAIRS.forged, IDS, { token }), { status: 200 });
    const analyst = await wire(PAIRS.maria, 'user:analyst', token);
    t.same((await analyst.query(IDS)).rowCount, 2, 'on the wire for another user than the certificate is');
    await analyst.end();
    const seen = new Set<string>();
    for await (const { action, subject, surface } of readRecords(join(where.dataDir, 'audit')))
      if (action !== null) seen.add(`${surface} ${action} ${subject}`);
    for (const one of [
      'wire login user:maria',
      'rest query user:maria',
      'rest query agent:scout',
      'mcp mcp user:maria',
    ])
      t.ok(seen.has(one), one);
  });

  await t.test('a rule that goes ends sessions and connections that rest on it', async (t) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.teardown(() => agent.destroy());
    const kept = () => rest(PAIRS.maria, IDS, { agent });
    const maria = await wire(PAIRS.maria, 'user:maria');
    const scout = await wire(PAIRS.scout, 'agent:scout');
    for (let i = 0; i < 4; i++) {
      t.match(await kept(), { status: 200 });
      t.same((await maria.query(IDS)).rowCount, 2);
      t.same((await scout.query(NAMES)).rowCount, 2);
    }
    writeFileSync(
      where.policy,
      policy(RULES.replace(/.*people.*\n/, '').replace('dns: scout.corp.example', 'acl_roles: [reader]')),
    );
    await reloaded(server);
    t.match(await kept(), { status: 401, body: /no rule of the policy/ });
    await t.rejects(maria.query(IDS), { code: '28000', message: /certificate of this session is nobody's/ });
    await t.rejects(scout.query(NAMES), { code: '42703' }, 'fewer rights from the next question on');
    t.same((await scout.query(IDS)).rowCount, 2);
    await scout.end();
    writeFileSync(where.policy, policy(RULES.replace(/issuer: '[^']*', /, '')));
    await reloaded(server);
    t.match(await kept(), { status: 200 }, 'and comes back with it');
  });

  await t.test('other authorities, taken up by SIGHUP, end what the old ones vouched for', async (t) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.teardown(() => agent.destroy());
    const maria = await wire(PAIRS.maria, 'user:maria');
    const over = new Promise((resolve) => maria.once('error', resolve));
    t.match(await rest(PAIRS.maria, IDS, { agent }), { status: 200 });
    t.match(await rest(PAIRS.renewed, IDS), { status: 401 });
    file('clients.crt', 'nothing');
    await reloaded(server);
    t.match(server.stderr, /clients\.crt holds no certificate of an authority/);
    t.match(
      await rest(PAIRS.maria, IDS, { agent }),
      { status: 200 },
      'a file without authorities changes nothing',
    );
    file('clients.crt', next.ca);
    await reloaded(server);
    t.match(await over, { code: '57P01' });
    t.match(
      await rest(PAIRS.maria, IDS, { agent }),
      { status: 401, body: /revoked, untrusted/ },
      'on an open connection too',
    );
    t.match(await rest(PAIRS.maria, IDS), { status: 401 });
    t.match(await rest(PAIRS.renewed, IDS), { status: 200 });
    const renewed = await wire(PAIRS.renewed, 'user:maria');
    t.same((await renewed.query(IDS)).rowCount, 2);
    await renewed.end();
  });

  await t.test('where a certificate is demanded, nothing else gets in', async (t) => {
    const strict = await served(t, files(ACCOUNTS_MANIFEST, policy(RULES)), {
      ...env,
      OSL_TLS_CLIENTS: 'require',
      OSL_WORKERS: '2',
      OSL_TLS_CLIENT_CRL: file('clients.crl', next.revoking([])),
    });
    const token = await tokenFor(strict.dataDir);
    file('clients.crt', corp.ca);
    file('clients.crl', corp.revoking([]));
    strict.hangUp();
    for (;;) {
      const reply = await ask(strict, PAIRS.maria, IDS).catch(() => null);
      if (reply?.status === 200) break;
      await sleep(50);
    }
    for (const pair of [null, PAIRS.forged, PAIRS.ended])
      await t.rejects(ask(strict, pair, IDS, { token }), 'cut off before a byte of HTTP');
    t.match(await ask(strict, PAIRS.unknown, IDS, { token }), { status: 200 }, 'a token still says who asks');
    const ssl = { ca: corp.ca, servername: 'localhost' };
    const at = {
      host: '127.0.0.1',
      port: Number(strict.record().pgPort),
      database: 'osl',
      user: 'user:analyst',
    };
    await t.rejects(new pg.Client({ ...at, ssl, password: token }).connect(), {
      code: '28000',
      message: 'connection requires a valid client certificate',
    });
    await t.rejects(new pg.Client({ ...at, password: token }).connect(), {
      code: '28000',
      message: 'connection requires a valid client certificate',
    });
    file('clients.crl', corp.revoking([PAIRS.maria]));
    await reloaded(strict);
    await t.rejects(ask(strict, PAIRS.maria, IDS), 'revoked');
    t.match(await ask(strict, PAIRS.unknown, IDS, { token }), { status: 200 });
  });

  function psql(more: Readonly<Record<string, string>>): Promise<string> {
    const key = file('maria.key', PAIRS.maria.key);
    const certificates = {
      PGSSLCERT: file('maria.crt', PAIRS.maria.cert),
      PGSSLKEY: key,
      PGSSLROOTCERT: file('ca.crt', corp.ca),
    };
    const all = { ...process.env, ...more, ...certificates, PGSSLMODE: 'verify-full', PGDATABASE: 'osl' };
    return new Promise((resolve, reject) => {
      execFile('chmod', ['600', key], () =>
        execFile('psql', ['-X', '-A', '-t', '-w', '-c', IDS], { env: all }, (failure, stdout) =>
          failure === null ? resolve(stdout) : reject(failure),
        ),
      );
    });
  }
}

interface Asked {
  readonly token?: string;
  readonly agent?: Agent;
  readonly path?: string;
  readonly body?: object;
}

/** One question over REST, with a certificate, a token, both or neither. */
function ask(server: Server, pair: Pair | null, osql: string, more: Asked = {}): Promise<Reply> {
  const { token, agent = false, path = '/osl/query', body = { osql } } = more;
  const options = {
    host: '127.0.0.1',
    port: Number(server.record().httpPort),
    path,
    method: 'POST',
    ca: corp.ca,
    servername: 'localhost',
    agent,
    ...pair,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
  } as const;
  return replyTo((taken) => request(options, taken), body);
}

async function reloaded(server: Server): Promise<void> {
  const before = server.stderr.length;
  server.hangUp();
  while (!/^(?:not )?reloaded: /m.test(server.stderr.slice(before))) await sleep(20);
}
