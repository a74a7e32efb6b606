import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { decodeProtectedHeader } from 'jose';
import t from 'tap';
import {
  type IdentityClaims,
  type RevocationKey,
  RevokedTokens,
  readClientCertificate,
} from '../../policy/index.js';
import { configuredKeys } from '../../policy/tokens/keys.js';
import { type MintClaims, mintToken, type SigningKey } from '../../policy/tokens/mint.js';
import { createVerifier } from '../../policy/tokens/token.js';
import { UsedTokens } from '../../policy/tokens/used-tokens.js';
import { authority } from '../support/authority.js';
import { NOW, PUBLIC_PEM, RSA, SECRET } from './tokens.js';

const CLAIMS: MintClaims = {
  tenant: 'acme',
  chain: ['alice', 'agent-7'],
  roles: ['TENANT_ADMIN'],
  aclRoles: ['analyst'],
  issuedAt: NOW,
};
const HS: SigningKey = { algorithm: 'HS256', secret: SECRET, kid: 'hs-1' };
const RS: SigningKey = { algorithm: 'RS256', privateKey: RSA.privateKey, kid: 'rs-1' };
const verifier = createVerifier({
  tenant: 'acme',
  issuers: ['service'],
  keys: configuredKeys({
    secrets: [{ kid: 'hs-1', secret: SECRET }],
    publicKeys: [{ kid: 'rs-1', pem: PUBLIC_PEM }],
  }),
  now: () => NOW * 1_000,
});

t.test('what is minted verifies', async (t) => {
  for (const key of [HS, RS]) {
    const token = await mintToken({ ...CLAIMS, lifetimeSeconds: 60, audience: 'osl' }, key);
    t.strictSame(decodeProtectedHeader(token), {
      alg: key.algorithm,
      typ: 'service-actor+jwt',
      kid: key.kid,
    });
    const identity = await verifier.verify(token);
    t.match(identity, {
      subject: 'agent-7',
      chain: CLAIMS.chain,
      aclRoles: ['analyst'],
      expiresAt: NOW + 60,
    });
  }
});

t.test('two tokens have two ids', async (t) => {
  const [a, b] = await Promise.all([mintToken(CLAIMS, HS), mintToken(CLAIMS, HS)]);
  t.not((await verifier.verify(a)).tokenId, (await verifier.verify(b)).tokenId);
});

t.test('what the verifier would refuse is not minted', async (t) => {
  const refused: readonly [string, Partial<MintClaims>, RegExp][] = [
    ['301 s', { lifetimeSeconds: 301 }, /lives longer than 300 s/],
    ['0 s', { lifetimeSeconds: 0 }, /later than/],
    ['no chain', { chain: [] }, /chain/],
    ['a loop', { chain: ['a', 'b', 'a'] }, /chain/],
    ['an empty role', { aclRoles: [''] }, /acl_roles/],
    ['an empty id', { tokenId: '' }, /jti/],
    ['half a second', { issuedAt: NOW + 0.5 }, /iat/],
  ];
  for (const [name, change, message] of refused) {
    await t.rejects(mintToken({ ...CLAIMS, ...change }, HS), { code: 'E3001', message }, name);
  }
});

t.test('nothing is signed with an unfit key', async (t) => {
  await t.rejects(mintToken(CLAIMS, { algorithm: 'HS256', secret: SECRET.subarray(0, 31) }), {
    name: 'RangeError',
  });
  await t.rejects(mintToken(CLAIMS, { ...HS, kid: 'a b' }), { name: 'RangeError' });
});

const weak = generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey.export({
  type: 'spki',
  format: 'pem',
});
const curve = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({
  type: 'spki',
  format: 'pem',
});
const other = generateKeyPairSync('x25519').publicKey.export({ type: 'spki', format: 'pem' });
const secretPem = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const REFUSED: readonly [string, Parameters<typeof configuredKeys>[0], RegExp][] = [
  ['no key at all', {}, /no verification key/],
  ['a secret of 5 bytes', { secrets: [{ secret: randomBytes(5) }] }, /at least 32 bytes, not 5/],
  ['a secret of 31 bytes', { secrets: [{ secret: randomBytes(31) }] }, /not 31/],
  ['an RSA key of 1,024 bits', { publicKeys: [{ pem: weak.toString() }] }, /2048 bits/],
  ['another elliptic curve', { publicKeys: [{ pem: curve.toString() }] }, /P-256/],
  ['another kind of key', { publicKeys: [{ pem: other.toString() }] }, /RSA .*P-256 .*Ed25519/],
  ['a private key', { publicKeys: [{ pem: secretPem }] }, /public key only/],
  ['a kid with a blank', { secrets: [{ secret: SECRET, kid: 'a b' }] }, /kid/],
  [
    'one kid for two algorithms',
    { secrets: [{ secret: SECRET, kid: 'k' }], publicKeys: [{ pem: PUBLIC_PEM, kid: 'k' }] },
    /same kid/,
  ],
  ['seventeen keys', { secrets: Array.from({ length: 17 }, () => ({ secret: SECRET })) }, /more than 16/],
];

t.test('unfit keys are refused at start', async (t) => {
  for (const [name, configuration, message] of REFUSED) {
    t.throws(() => configuredKeys(configuration), { name: 'RangeError', message }, name);
  }
});

t.test('a secret of 32 bytes is long enough', async (t) => {
  t.equal(
    (await configuredKeys({ secrets: [{ secret: randomBytes(32) }] }).candidates('HS256', null)).length,
    1,
  );
});

const root = authority('/C=DE/O=Corp/CN=Root, the first');
t.teardown(() => root.end());
const read = (subject: string, names?: string) =>
  readClientCertificate(
    new X509Certificate(root.issue({ subject, ...(names !== undefined && { names }) }).cert),
  );

t.test('names are read whole, whatever signs they have', async (t) => {
  const { dn, cn, issuer, names } = read(
    '/C=DE/O=Corp, Ltd./CN=Møller "x"',
    'DNS:A.Example,URI:spiffe://corp/a,email:a@corp.example,IP:10.0.0.1',
  );
  t.equal(dn, 'CN=Møller \\"x\\",O=Corp\\, Ltd.,C=DE');
  t.equal(cn, 'Møller "x"');
  t.equal(issuer, 'CN=Root\\, the first,O=Corp,C=DE');
  t.same([...names], ['dns:a.example', 'uri:spiffe://corp/a', 'email:a@corp.example']);
  const pem = root.issue({ subject: '/C=DE/O=Corp, Ltd./CN=Møller "x"' }).cert;
  const how = ['x509', '-noout', '-subject', '-nameopt', 'RFC2253,-esc_msb'];
  const printed = execFileSync('openssl', how, { input: pem, encoding: 'utf8' });
  t.equal(printed.trim(), `subject=${dn}`, 'as the documentation has openssl print it');
  t.same(read('/O=Corp').cn, null);
  t.same(read('/CN=a/CN=b').cn, null, 'two are none');
  t.same([...read('/CN=a').names], []);
});

t.test('a name that is written as if it were several is one', async (t) => {
  // openssl.cnf cannot put a comma into a name, so an alternative name comes by way of Node's own text of one.
  const certificate = new X509Certificate(root.issue({ subject: '/CN=a' }).cert);
  const shown = (text: string) => {
    const names = Object.create(certificate, { subjectAltName: { value: text } });
    const members = ['subject', 'issuer', 'validTo'] as const;
    for (const member of members) Object.defineProperty(names, member, { value: certificate[member] });
    Object.defineProperty(names, 'toLegacyObject', { value: () => certificate.toLegacyObject() });
    return [...readClientCertificate(names).names];
  };
  t.same(shown('URI:"https://x/, DNS:bi.corp.example"'), ['uri:https://x/, DNS:bi.corp.example']);
  t.same(shown('DNS:"a\\", DNS:b", DNS:c'), ['dns:a", dns:b', 'dns:c']);
  t.same(shown('othername:<unsupported>, DNS:c'), ['dns:c']);
  t.same(shown('DNS:"a'), [], 'what is not well formed is not a name');
});

t.test('a token is used once; one of before the start counts as used', async (t) => {
  let now = 1_000_000;
  const used = new UsedTokens(() => now);
  t.ok(used.markUsed('a', 1_000, 1_300_000));
  t.notOk(used.markUsed('a', 1_000, 1_300_000));
  t.ok(used.markUsed('b', 1_001, 1_300_000));
  t.notOk(used.markUsed('old', 998, 1_300_000));
  t.ok(used.markUsed('this second', 999.5, 1_300_000));
  now = 2_000_000;
  t.notOk(used.markUsed('a', 1_000, 1_300_000), 'also when it has ended');
});

t.test('where no more can be remembered each counts as used, until some have ended', async (t) => {
  let now = 1_000_000;
  const used = new UsedTokens(() => now);
  for (let i = 0; i < 100_000; i++) used.markUsed(`t${i}`, 1_000, 1_300_000);
  t.notOk(used.markUsed('one more', 1_000, 1_300_000));
  now = 1_400_000;
  t.ok(used.markUsed('one more', 1_399, 1_700_000));
});

/** When something was revoked, seconds since the epoch. */
const AT = 1_700_000_000;

/** A token of `user:ann` that an agent shows for her, issued a minute before. */
const TOKEN: IdentityClaims = {
  tenant: 'shop',
  subject: 'agent:scout',
  chain: ['user:ann', 'agent:scout'],
  roles: [],
  aclRoles: [],
  issuedAt: AT - 60,
  expiresAt: AT + 240,
  tokenId: 'one',
};

function revoked(...all: readonly RevocationKey[]): RevokedTokens {
  const tokens = new RevokedTokens();
  tokens.add(all.map((what) => ({ ...what, id: randomUUID(), at: AT * 1_000, until: (AT + 360) * 1_000 })));
  return tokens;
}

const SOURCE = { chain: ['user:ann'], tokenId: 'source', issuedAt: AT - 3_000 };

t.test('what is revoked', async (t) => {
  const cases: readonly (readonly [string, RevocationKey, Partial<IdentityClaims>, boolean])[] = [
    ['by its id', { kind: 'token', name: 'one' }, {}, true],
    ['not by another id', { kind: 'token', name: 'two' }, {}, false],
    ['an id is not a subject', { kind: 'subject', name: 'one' }, {}, false],
    ['by who shows it', { kind: 'subject', name: 'agent:scout' }, {}, true],
    ['by whom it is shown for', { kind: 'subject', name: 'user:ann' }, {}, true],
    ['not by somebody else', { kind: 'subject', name: 'user:bob' }, {}, false],
    ['issued just then', { kind: 'subject', name: 'user:ann' }, { issuedAt: AT }, true],
    [
      'issued after, as far as clocks can say',
      { kind: 'subject', name: 'user:ann' },
      { issuedAt: AT + 30 },
      true,
    ],
    [
      'issued after, whatever the clocks',
      { kind: 'subject', name: 'user:ann' },
      { issuedAt: AT + 31 },
      false,
    ],
    [
      'by an issuer of other clocks',
      { kind: 'subject', name: 'user:ann' },
      { issuedAt: AT + 31, skewSeconds: 60 },
      true,
    ],
    ['made from one', { kind: 'token', name: 'source' }, { sources: [SOURCE] }, true],
    [
      'made anew from an older one of a subject',
      { kind: 'subject', name: 'user:ann' },
      { issuedAt: AT + 100, sources: [SOURCE] },
      true,
    ],
  ];
  for (const [name, what, more, expected] of cases)
    t.equal(revoked(what).has({ ...TOKEN, ...more }), expected, name);
});

t.test(
  'of two revocations of a subject the later counts, in whichever order they are heard of',
  async (t) => {
    for (const order of [
      [AT, AT + 100],
      [AT + 100, AT],
    ]) {
      const tokens = new RevokedTokens();
      for (const at of order)
        tokens.add([
          { kind: 'subject', name: 'user:ann', id: randomUUID(), at: at * 1_000, until: (at + 360) * 1_000 },
        ]);
      t.equal(tokens.has({ ...TOKEN, issuedAt: AT + 100 }), true);
      tokens.prune((AT + 400) * 1_000);
      t.equal(tokens.has({ ...TOKEN, issuedAt: AT + 100 }), true, 'the earlier has ended by itself');
      tokens.prune((AT + 460) * 1_000);
      t.same(tokens.all(), []);
      t.equal(tokens.has(TOKEN), false);
    }
  },
);

t.test('who follows hears of each that is new, and of none twice', async (t) => {
  const tokens = new RevokedTokens();
  let heard = 0;
  const unfollow = tokens.follow(() => {
    heard += 1;
  });
  const one = {
    kind: 'token',
    name: 'one',
    id: randomUUID(),
    at: AT * 1_000,
    until: (AT + 360) * 1_000,
  } as const;
  t.equal(tokens.add([one]).length, 1);
  t.equal(tokens.add([one]).length, 0);
  t.equal(heard, 1);
  unfollow();
  tokens.add([{ ...one, id: randomUUID() }]);
  t.equal(heard, 1);
});
