import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { configuredKeys, createVerifier } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { EXAMPLE, osl, temporary } from './support.js';

const dataDir = temporary();
const { signing } = tenantKeys(dataDir);
const verifier = createVerifier({
  tenant: 'demo',
  keys: configuredKeys({ secrets: [{ secret: signing }] }),
  issuers: ['service'],
  now: Date.now,
});
const PLACE = ['--data-dir', dataDir, '--policy', join(EXAMPLE, 'policy.yaml')];

t.test('a token, and nothing else, is printed; the verifier accepts it', async (t) => {
  const { code, stdout, stderr, ms } = await osl(['token', ...PLACE, '--subject', 'user:auditor']);
  t.equal(code, 0);
  t.equal(stderr, '');
  t.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/);
  const identity = await verifier.verify(stdout.trim());
  t.match(identity, { subject: 'user:auditor', chain: ['user:auditor'], roles: [] });
  t.same([...identity.aclRoles], ['auditor', 'analyst'], 'the ceiling');
  t.comment(`osl token took ${ms.toFixed(0)} ms`);
  t.ok(ms < 5_000);
});

t.test('chain, roles and lifetime are those of the flags', async (t) => {
  const flags = ['--chain', 'user:counsel,agent:scout', '--acl-roles', 'copyleft', '--roles', 'TENANT_ADMIN'];
  const { stdout } = await osl([
    'token',
    ...PLACE,
    '--subject',
    'agent:scout',
    ...flags,
    '--ttl',
    '60',
    '--json',
  ]);
  const printed = JSON.parse(stdout) as Record<string, unknown>;
  const identity = await verifier.verify(String(printed['token']));
  t.match(identity, {
    subject: 'agent:scout',
    chain: ['user:counsel', 'agent:scout'],
    roles: ['TENANT_ADMIN'],
  });
  t.same([...identity.aclRoles], ['copyleft']);
  const payload = JSON.parse(
    Buffer.from(String(printed['token']).split('.')[1] ?? '', 'base64url').toString(),
  );
  t.equal(payload.exp - payload.iat, 60);
});

const REFUSED: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['an unknown subject', ['--subject', 'user:analist'], /`user:analist` .* perhaps you meant `user:analyst`/],
  [
    'an unknown member of the chain',
    ['--chain', 'nobody,agent:scout'],
    /subject `nobody` is not in the policy/,
  ],
  ['nobody', [], /--subject/],
  [
    'a chain that ends in another',
    ['--subject', 'user:analyst', '--chain', 'agent:scout'],
    /ends in `agent:scout`/,
  ],
  ['a lifetime that is too long', ['--subject', 'user:analyst', '--ttl', '301'], /from 1 to 300/],
  [
    'a token that no server takes, for its size,',
    ['--subject', 'user:analyst', '--acl-roles', names(200, 60)],
    /would have \d+ bytes, and a server takes 8192: claim fewer roles, with --acl-roles/,
  ],
  [
    'a token of more roles than one can claim',
    ['--subject', 'user:analyst', '--acl-roles', names(257, 4)],
    /at most 256 data roles, and these are 257: name fewer/,
  ],
];

/** Roles, each of so many letters. */
function names(count: number, length: number): string {
  return Array.from({ length: count }, (_, i) => `r${i}`.padEnd(length, 'x')).join(',');
}

for (const [what, flags, message] of REFUSED) {
  t.test(`${what} is refused in one line, with exit 2`, async (t) => {
    const { code, stdout, stderr } = await osl(['token', ...PLACE, ...flags]);
    t.equal(code, 2);
    t.equal(stdout, '');
    t.match(stderr, message);
    t.match(stderr, /^error: [^\n]+\n$/);
  });
}

t.test('a role that the policy does not declare is minted, with a warning', async (t) => {
  const { code, stdout, stderr } = await osl([
    'token',
    ...PLACE,
    '--subject',
    'user:analyst',
    '--acl-roles',
    'analist',
  ]);
  t.equal(code, 0);
  t.match(stderr, /warning: .*`analist`/);
  t.same([...(await verifier.verify(stdout.trim())).aclRoles], ['analist']);
});

t.test('without keys none are made: exit 2', async (t) => {
  const empty = temporary();
  const { code, stderr } = await osl([
    'token',
    '--data-dir',
    empty,
    '--policy',
    PLACE[3] ?? '',
    '--subject',
    'x',
  ]);
  t.equal(code, 2);
  t.match(stderr, /^error: there are no keys in [^\n]+\n$/);
  t.equal((await osl(['token', '--data-dir', empty, '--policy', PLACE[3] ?? '', '--subject', 'x'])).code, 2);
});

t.test(
  'keys of a data directory are copied, with the key of exchanged accounts if it is there',
  async (t) => {
    const from = temporary();
    const keys = join(from, 'keys');
    t.equal((await osl(['keys', 'make', keys])).code, 0);
    const exchange = readFileSync(join(keys, 'exchange.pem'));
    const to = join(temporary(), 'keys');
    t.match(await osl(['keys', 'make', to, '--from', from]), { code: 0, stdout: /^signing / });
    t.strictSame(readFileSync(join(to, 'exchange.pem')), exchange);
  },
);

t.test('a policy file with a fault is shown with its place', async (t) => {
  const file = join(temporary(), 'policy.yaml');
  writeFileSync(file, 'version: 1\ntenant: demo\nsubjects: [\n');
  const { code, stderr } = await osl([
    'token',
    '--data-dir',
    dataDir,
    '--policy',
    file,
    '--subject',
    'user:analyst',
  ]);
  t.equal(code, 2);
  t.match(stderr, /policy\.yaml:\d+:\d+: error M0003/);
});
