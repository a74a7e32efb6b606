import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import pg from 'pg';
import t from 'tap';
import { mintToken, readRecords } from '../../policy/index.js';
import { osl, type Server, temporary } from '../cli/support.js';
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
  while (!/\n?(?:not )?reloaded: /.test(server.stderr.slice(before))) await sleep(20);
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
      t.equal(await statusOf(server, local), 401);
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

  const client = new pg.Client({
    host: '127.0.0.1',
    port: Number(server.record()['pgPort']),
    user: 'user:analyst',
    password: await tokenFor(where.dataDir),
    database: 'osl',
  });
  await client.connect();
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
  });
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
