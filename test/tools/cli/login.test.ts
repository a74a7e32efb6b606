import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { Browser } from '../../identity/browser.js';
import { CLIENT, RESOURCE, startProvider } from '../../identity/provider.js';
import { place, served } from '../../service/operations/support.js';
import { connectPg } from '../../support/pg-client.js';
import { call, newClient } from '../../surfaces/mcp/support.js';
import { BIN, osl, Server, temporary } from './support.js';

/** `osl login` with a real provider, a real server, and a person at a browser. ID tokens end at once: each use renews. */

const provider = await startProvider({ idTokenSeconds: 20 });
t.teardown(() => provider.stop());
const where = place();
writeFileSync(
  where.policy,
  `${readFileSync(where.policy, 'utf8')}
exchange:
  - name: people
    issuer: ${provider.issuer}
    when: { groups: [shop-regional, shop-analysts] }
    subject: "user:{sub}"
    ceiling: [analyst]
    admin: [TENANT_ADMIN]
`,
);
const issuers = join(temporary(), 'issuers.yaml');
const login = { client_id: CLIENT, scopes: ['openid', 'offline_access'] };
const issuer = {
  issuer: provider.issuer,
  tokens: 'identity',
  audiences: [RESOURCE],
  clients: [CLIENT],
  login,
};
writeFileSync(issuers, JSON.stringify({ issuers: [issuer] }));
const server = await served(t, where, { OSL_ISSUERS: issuers });
const url = `http://127.0.0.1:${server.record()['httpPort']}`;
const config = temporary();
const env = { XDG_CONFIG_HOME: config };
const HERE = ['--data-dir', where.dataDir];
const ONE = 'select 1 as a';

/** Logs in as `who`; gives what the command said in the end. */
async function logIn(
  who: string,
  flags: readonly string[],
): Promise<{ code: number | null; stdout: string }> {
  const command = new Server(['login', ...flags, ...HERE], where.dataDir, env);
  await command.said('Log in at ');
  const [, address = ''] = /Log in at (\S+)/.exec(command.stdout) ?? [];
  const last = await new Browser(who).visit(address);
  // Back to the port on which the command listens; on another screen there is none.
  if (last.startsWith('http://')) await (await fetch(last)).text();
  return command.ended;
}

const logins = (): readonly string[] => readdirSync(join(config, 'osl', 'logins'));

t.test('nobody is logged in: a server that has an issuer mints for nobody', async (t) => {
  const { code, stderr } = await osl(['query', ...HERE, ONE], { env });
  t.equal(code, 2);
  t.match(stderr, /takes tokens of its issuers alone.*osl login/);
  t.match(await osl(['logout', ...HERE], { env }), { code: 0, stdout: /nobody is logged in/ });
});

for (const [way, flags] of [
  ['by code, back on loopback', ['--no-open']],
  ['by device', ['--device']],
] as const) {
  t.test(`login ${way}: query, explain, psql, proxy and MCP work without a key`, async (t) => {
    t.match(await logIn('erin', flags), { code: 0, stdout: /logged in at http:\S+ as user:erin/ });
    const [file = ''] = logins();
    t.equal(logins().length, 1);
    t.equal(statSync(join(config, 'osl', 'logins', file)).mode & 0o777, 0o600);
    t.equal(statSync(join(config, 'osl', 'logins')).mode & 0o777, 0o700);

    t.match(await osl(['query', ...HERE, '--json', ONE], { env }), { code: 0, stdout: /"a":1/ });
    t.match(
      await osl(['query', '--server', url, '--json', ONE], { env }),
      { code: 0, stdout: /"a":1/ },
      'by its URL',
    );
    t.match(
      await osl(['query', ...HERE, '--json', '--watch', '1', '-n', '2', ONE], { env }),
      { code: 0, stdout: /^(\{.*"a":1.*\}\n){2}$/ },
      'again and again',
    );
    const many = await Promise.all([1, 2, 3].map(() => osl(['query', ...HERE, '--json', ONE], { env })));
    t.same(
      many.map(({ code }) => code),
      [0, 0, 0],
      'at the same time, with one refresh token that is good once',
    );
    t.match(await osl(['psql', ...HERE, '-Atc', 'select current_user'], { env }), {
      code: 0,
      stdout: 'user:erin\n',
    });

    const proxy = new Server(['proxy', '--port', '0', '--json', ...HERE], where.dataDir, env);
    t.teardown(() => proxy.signal('SIGKILL'));
    await proxy.said('"event":"listening"');
    const { port, subject } = JSON.parse(proxy.stdout) as { port: number; subject: string };
    t.equal(subject, 'user:erin');
    const client = await connectPg({ port, user: 'any' });
    t.same((await client.query(ONE)).rows, [{ a: 1 }]);
    await client.end();
    await proxy.signal('SIGTERM');

    const mcp = newClient('auto');
    const command = { command: process.execPath, args: [BIN, 'mcp', ...HERE], stderr: 'ignore' as const };
    await mcp.connect(
      new StdioClientTransport({ ...command, env: { ...env, PATH: process.env['PATH'] ?? '' } }),
    );
    t.match((await call(mcp, 'semantic_query', { osql: ONE })).content, { row_count: 1 });
    await mcp.close();

    const kept = readFileSync(join(config, 'osl', 'logins', file));
    t.match(await osl(['logout', ...HERE], { env }), { code: 0, stdout: /logged out/ });
    t.same(logins(), []);
    t.equal((await osl(['query', ...HERE, ONE], { env })).code, 2);
    writeFileSync(join(config, 'osl', 'logins', file), kept, { mode: 0o600 });
    t.match(
      await osl(['query', ...HERE, ONE], { env }),
      { code: 1, stderr: /the login at .* is over .*osl login/ },
      'its provider was told: who kept a copy has nothing',
    );
    await osl(['logout', ...HERE], { env });
  });
}

t.test('who has no rule is told so, and admin roles come where a command asks for them', async (t) => {
  t.match(await logIn('nobody', ['--no-open']), {
    code: 1,
    stderr: /does not take the login: .*no rule of the policy/,
  });
  t.match(await logIn('rita', ['--no-open']), { code: 0, stdout: /as user:rita/ });
  t.equal(
    (await osl(['explain', ...HERE, '--statement', ONE], { env })).code,
    0,
    'what only admins are shown',
  );
  const actions: string[] = [];
  for await (const { kind, action, subject } of readRecords(join(where.dataDir, 'audit')))
    if (kind === 'outcome' && subject === 'user:rita') actions.push(action);
  t.ok(actions.includes('exchange'));
});

t.test('a provider that does not answer has not ended the login', async (t) => {
  await provider.stop();
  t.match(await osl(['query', ...HERE, ONE], { env }), {
    code: 3,
    stderr: new RegExp(`^error: no answer from ${provider.issuer}: nothing listens there`),
  });
  t.equal(logins().length, 1);
});
