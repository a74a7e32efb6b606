import { decodeProtectedHeader } from 'jose';
import t from 'tap';
import { configuredKeys } from '../../policy/tokens/keys.js';
import { type MintClaims, mintToken, type SigningKey } from '../../policy/tokens/mint.js';
import { createVerifier } from '../../policy/tokens/token.js';
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
