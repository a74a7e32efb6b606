import { constants, createSign } from 'node:crypto';
import { QueryError } from 'osl-compiler';
import t from 'tap';
import type { ClaimRules } from '../../policy/tokens/claims.js';
import { configuredKeys, type KeySource } from '../../policy/tokens/keys.js';
import { createVerifier } from '../../policy/tokens/token.js';
import { TOKEN_FAULTS, type TokenFault } from '../../policy/tokens/token-fault.js';
import {
  base64url,
  claims,
  HEADER,
  header,
  hmac,
  NOW,
  OTHER_RSA,
  OTHER_SECRET,
  PAYLOAD,
  PUBLIC_PEM,
  RSA,
  rsa,
  SECRET,
  seal,
} from './tokens.js';

interface Row {
  readonly name: string;
  readonly token: string;
  readonly expect: TokenFault | 'ok';
  /** Seconds that the clock is ahead of `NOW`. */
  readonly clock?: number;
  readonly rules?: Partial<ClaimRules>;
  readonly keys?: KeySource;
}

const secretOnly = configuredKeys({ secrets: [{ secret: SECRET }] });
const both = configuredKeys({ secrets: [{ secret: SECRET }], publicKeys: [{ pem: PUBLIC_PEM }] });
const publicOnly = configuredKeys({ publicKeys: [{ pem: PUBLIC_PEM }] });
const named = configuredKeys({
  secrets: [{ kid: 'hs-1', secret: SECRET }],
  publicKeys: [{ kid: 'rs-1', pem: PUBLIC_PEM }],
});
const rotating = configuredKeys({ secrets: [{ secret: OTHER_SECRET }, { secret: SECRET }] });

const H = JSON.stringify(HEADER);
const P = JSON.stringify(PAYLOAD);
const good = seal(H, P);
const [h = '', p = '', s = ''] = good.split('.');
const withPayload = (text: string): string => seal(H, text);
const people = (n: number): string[] => Array.from({ length: n }, (_, i) => `s${i}`);
const chainOf = (chain: readonly unknown[]): string => claims({ chain, sub: chain.at(-1) });

/** The same bytes with a spare bit set in the last character: 32 bytes leave two spare bits. */
function spareBit(signature: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(signature.slice(-1));
  return signature.slice(0, -1) + alphabet.charAt(last + 1);
}

const pss = (input: string): Buffer =>
  createSign('RSA-SHA256')
    .update(input)
    .sign({ key: RSA.privateKey, padding: constants.RSA_PKCS1_PSS_PADDING });

const TABLE: readonly Row[] = [
  // ---- good tokens
  { name: 'HS256 as the contract has it', token: good, expect: 'ok' },
  {
    name: 'RS256 against the public key',
    token: header({ alg: 'RS256' }, rsa(RSA.privateKey)),
    expect: 'ok',
  },
  { name: 'HS256 by kid', token: header({ kid: 'hs-1' }), keys: named, expect: 'ok' },
  {
    name: 'RS256 by kid',
    token: header({ alg: 'RS256', kid: 'rs-1' }, rsa(RSA.privateKey)),
    keys: named,
    expect: 'ok',
  },
  { name: 'either secret during rotation', token: good, keys: rotating, expect: 'ok' },
  { name: 'a chain of one', token: chainOf(['alice']), expect: 'ok' },
  { name: 'a chain of 16', token: chainOf(people(16)), expect: 'ok' },
  {
    name: 'no roles claim gives no roles',
    token: claims({ roles: undefined, acl_roles: undefined }),
    expect: 'ok',
  },
  { name: 'claims that we do not know', token: claims({ scopes: ['osl:admin'], email: 'x' }), expect: 'ok' },
  { name: 'harmless header parameters', token: header({ cty: 'x', x5t: 'abc' }), expect: 'ok' },
  { name: 'a nested key that repeats an outer one', token: claims({ extra: { sub: 1 } }), expect: 'ok' },
  { name: 'names beyond ASCII', token: chainOf(['Zoë 🦉']), expect: 'ok' },

  // ---- what an exchange found out
  {
    name: 'one entry for each of the chain',
    token: claims({ exchange: [{ roles: [] }, { rule: 'r', roles: ['a'], attributes: { region: ['eu'] } }] }),
    rules: { exchanged: true },
    expect: 'ok',
  },
  { name: 'none, of the exchange', token: good, rules: { exchanged: true }, expect: 'exchange' },
  {
    name: 'one entry too few',
    token: claims({ exchange: [{ roles: [] }] }),
    rules: { exchanged: true },
    expect: 'exchange',
  },
  {
    name: 'an attribute that is not a list of names',
    token: claims({ exchange: [{ roles: [] }, { roles: [], attributes: { region: 'eu' } }] }),
    rules: { exchanged: true },
    expect: 'exchange',
  },
  {
    name: 'entries without roles',
    token: claims({ exchange: [{}, {}] }),
    rules: { exchanged: true },
    expect: 'exchange',
  },

  // ---- size and form
  { name: 'larger than 8 kB', token: claims({ filler: 'x'.repeat(8_192) }), expect: 'size' },
  { name: 'a megabyte', token: 'x'.repeat(1_000_000), expect: 'size' },
  { name: 'empty', token: '', expect: 'parts' },
  { name: 'one part', token: h, expect: 'parts' },
  { name: 'two parts', token: `${h}.${p}`, expect: 'parts' },
  { name: 'four parts', token: `${good}.${s}`, expect: 'parts' },
  { name: 'five parts, a JWE', token: `${h}.${p}.${s}.${p}.${s}`, expect: 'parts' },
  { name: 'no signature', token: `${h}.${p}.`, expect: 'parts' },
  { name: 'no payload', token: `${h}..${s}`, expect: 'parts' },
  { name: 'padding on the signature', token: `${good}=`, expect: 'parts' },
  { name: 'padding on the header', token: `${h}=.${p}.${s}`, expect: 'parts' },
  { name: 'white space behind', token: `${good} `, expect: 'parts' },
  { name: 'white space before', token: ` ${good}`, expect: 'parts' },
  { name: 'a line break inside', token: `${h}.${p.slice(0, 8)}\n${p.slice(8)}.${s}`, expect: 'parts' },
  { name: 'a spare bit in the last character', token: `${h}.${p}.${spareBit(s)}`, expect: 'parts' },
  { name: 'base64 instead of base64url', token: `${h}.${p}.${'+/'.repeat(21)}A`, expect: 'parts' },
  { name: 'characters beyond ASCII', token: `${h}.${p}é.${s}`, expect: 'parts' },
  { name: 'a part of impossible length', token: `${h}.${p}.${s}AA`, expect: 'parts' },
  {
    name: 'JSON serialization',
    token: JSON.stringify({ protected: h, payload: p, signature: s }),
    expect: 'parts',
  },

  // ---- header
  { name: 'a header that is not JSON', token: seal('nonsense', P), expect: 'header' },
  { name: 'a header that is an array', token: seal('[]', P), expect: 'header' },
  { name: 'a header with a byte order mark', token: seal(`\ufeff${H}`, P), expect: 'header' },
  { name: 'a header key twice', token: seal(`{"alg":"none",${H.slice(1)}`, P), expect: 'duplicateKey' },
  { name: 'typ JWT', token: header({ typ: 'JWT' }), expect: 'type' },
  { name: 'typ in capitals', token: header({ typ: 'SERVICE-ACTOR+JWT' }), expect: 'type' },
  { name: 'typ with application/', token: header({ typ: 'application/service-actor+jwt' }), expect: 'type' },
  { name: 'typ missing', token: header({ typ: undefined }), expect: 'type' },
  {
    name: 'alg none with an empty signature',
    token: `${base64url('{"alg":"none"}')}.${p}.`,
    expect: 'parts',
  },
  { name: 'alg none with a signature', token: header({ alg: 'none' }), expect: 'algorithm' },
  { name: 'alg None', token: header({ alg: 'None' }), expect: 'algorithm' },
  { name: 'alg missing', token: header({ alg: undefined }), expect: 'algorithm' },
  { name: 'alg a list', token: header({ alg: ['HS256'] }), expect: 'algorithm' },
  { name: 'HS512', token: header({ alg: 'HS512' }, hmac(SECRET, 'sha512')), expect: 'algorithm' },
  { name: 'HS384', token: header({ alg: 'HS384' }, hmac(SECRET, 'sha384')), expect: 'algorithm' },
  { name: 'RS512', token: header({ alg: 'RS512' }, rsa(RSA.privateKey, 'RSA-SHA512')), expect: 'algorithm' },
  { name: 'PS256', token: header({ alg: 'PS256' }, pss), expect: 'algorithm' },
  { name: 'crit', token: header({ crit: ['exp'], exp: 1 }), expect: 'headerParameter' },
  { name: 'b64 false', token: header({ b64: false, crit: ['b64'] }), expect: 'headerParameter' },
  {
    name: 'a key of its own in jwk',
    token: header(
      { alg: 'RS256', jwk: OTHER_RSA.publicKey.export({ format: 'jwk' }) },
      rsa(OTHER_RSA.privateKey),
    ),
    expect: 'headerParameter',
  },
  { name: 'jku', token: header({ jku: 'https://evil.example/jwks' }), expect: 'headerParameter' },
  { name: 'x5u', token: header({ x5u: 'https://evil.example/x5' }), expect: 'headerParameter' },
  { name: 'x5c', token: header({ x5c: ['MIIB'] }), expect: 'headerParameter' },
  { name: 'zip', token: header({ zip: 'DEF' }), expect: 'headerParameter' },
  { name: 'kid with a path', token: header({ kid: '../../dev/null' }), keys: named, expect: 'keyId' },
  { name: 'kid with SQL', token: header({ kid: "x' union select 'k" }), keys: named, expect: 'keyId' },
  { name: 'kid of 129 characters', token: header({ kid: 'k'.repeat(129) }), keys: named, expect: 'keyId' },
  {
    name: 'kid with a line break at its end',
    token: header({ kid: 'hs-1\n' }),
    keys: named,
    expect: 'keyId',
  },
  { name: 'kid empty', token: header({ kid: '' }), expect: 'keyId' },
  { name: 'kid a number', token: header({ kid: 1 }), expect: 'keyId' },
  { name: 'kid null', token: header({ kid: null }), expect: 'keyId' },
  { name: 'kid unknown', token: header({ kid: 'hs-2' }), keys: named, expect: 'unknownKey' },
  { name: 'kid where keys have none: they are tried', token: header({ kid: 'hs-1' }), expect: 'ok' },
  { name: 'kid as a base64 thumbprint', token: header({ kid: 'q+/9=' }), expect: 'ok' },
  { name: 'kid __proto__', token: header({ kid: '__proto__' }), keys: named, expect: 'unknownKey' },
  {
    name: 'kid of the RSA key with HS256',
    token: header({ kid: 'rs-1' }),
    keys: named,
    expect: 'unknownKey',
  },
  { name: 'HS256 where only RS256 is configured', token: good, keys: publicOnly, expect: 'otherAlgorithm' },
  {
    name: 'RS256 where only HS256 is configured',
    token: header({ alg: 'RS256' }, rsa(RSA.privateKey)),
    keys: secretOnly,
    expect: 'otherAlgorithm',
  },

  // ---- signature
  {
    name: 'HS256 with the RSA public key as secret',
    token: header({}, hmac(PUBLIC_PEM)),
    expect: 'signature',
  },
  {
    name: 'HS256 with the RSA public key, nothing else configured',
    token: header({}, hmac(PUBLIC_PEM)),
    keys: publicOnly,
    expect: 'otherAlgorithm',
  },
  { name: 'another secret', token: seal(H, P, hmac(OTHER_SECRET)), expect: 'signature' },
  { name: 'an empty secret', token: seal(H, P, hmac('')), expect: 'signature' },
  {
    name: 'another RSA key',
    token: header({ alg: 'RS256' }, rsa(OTHER_RSA.privateKey)),
    expect: 'signature',
  },
  { name: 'PSS under the name RS256', token: header({ alg: 'RS256' }, pss), expect: 'signature' },
  { name: 'HS512 under the name HS256', token: seal(H, P, hmac(SECRET, 'sha512')), expect: 'signature' },
  { name: 'a cut signature', token: `${h}.${p}.${s.slice(0, 40)}`, expect: 'signature' },
  {
    name: 'a widened payload under an old signature',
    token: `${h}.${base64url(JSON.stringify({ ...PAYLOAD, acl_roles: ['admin'] }))}.${s}`,
    expect: 'signature',
  },
  {
    name: 'a shortened chain under an old signature',
    token: `${h}.${base64url(JSON.stringify({ ...PAYLOAD, chain: ['agent-7'] }))}.${s}`,
    expect: 'signature',
  },
  {
    name: 'a bad payload under a bad signature',
    token: seal(H, '{}', hmac(OTHER_SECRET)),
    expect: 'signature',
  },

  // ---- payload
  { name: 'a payload that is not JSON', token: withPayload('nonsense'), expect: 'payload' },
  { name: 'a payload that is null', token: withPayload('null'), expect: 'payload' },
  { name: 'a payload that is an array', token: withPayload(`[${P}]`), expect: 'payload' },
  { name: 'a payload key twice', token: withPayload(`{"sub":"root",${P.slice(1)}`), expect: 'duplicateKey' },
  {
    name: 'a payload key twice, once escaped',
    token: withPayload(`{"\\u0073ub":"root",${P.slice(1)}`),
    expect: 'duplicateKey',
  },
  {
    name: 'a payload key twice, far inside',
    token: withPayload(`{"x":[{"a":1, "a" :2}],${P.slice(1)}`),
    expect: 'duplicateKey',
  },
  {
    name: 'a payload key twice, the same value',
    token: withPayload(`{"version":2,${P.slice(1)}`),
    expect: 'duplicateKey',
  },
  { name: 'a value that looks like a key', token: claims({ note: '"sub":"x","sub":"y"' }), expect: 'ok' },
  { name: 'claims on __proto__', token: withPayload(`{"__proto__":${P}}`), expect: 'version' },

  // ---- version and tenant
  { name: 'version 1', token: claims({ version: 1 }), expect: 'version' },
  { name: 'version 3', token: claims({ version: 3 }), expect: 'version' },
  { name: 'version "2"', token: claims({ version: '2' }), expect: 'version' },
  { name: 'version missing', token: claims({ version: undefined }), expect: 'version' },
  { name: 'another tenant', token: claims({ tenant_id: 'globex' }), expect: 'tenant' },
  { name: 'tenant missing', token: claims({ tenant_id: undefined }), expect: 'tenant' },
  { name: 'tenant in capitals', token: claims({ tenant_id: 'ACME' }), expect: 'tenant' },
  { name: 'tenant a list', token: claims({ tenant_id: ['acme'] }), expect: 'tenant' },

  // ---- chain and sub
  { name: 'chain missing', token: claims({ chain: undefined }), expect: 'chain' },
  { name: 'chain empty', token: claims({ chain: [] }), expect: 'chain' },
  { name: 'chain a string', token: claims({ chain: 'agent-7' }), expect: 'chain' },
  { name: 'chain an object', token: claims({ chain: { 0: 'agent-7', length: 1 } }), expect: 'chain' },
  { name: 'chain that loops', token: chainOf(['alice', 'agent-7', 'alice']), expect: 'chain' },
  { name: 'chain of 17', token: chainOf(people(17)), expect: 'chain' },
  { name: 'chain of 500', token: chainOf(people(500)), expect: 'chain' },
  { name: 'chain with an empty name', token: chainOf(['', 'agent-7']), expect: 'chain' },
  { name: 'chain with a number', token: chainOf([7, 'agent-7']), expect: 'chain' },
  { name: 'chain with null', token: chainOf([null, 'agent-7']), expect: 'chain' },
  { name: 'chain with a name of 257', token: chainOf(['x'.repeat(257), 'agent-7']), expect: 'chain' },
  { name: 'chain with NUL in a name', token: chainOf(['alice\0', 'agent-7']), expect: 'chain' },
  { name: 'chain with a line break in a name', token: chainOf(['alice\n', 'agent-7']), expect: 'chain' },
  { name: 'chain with half a surrogate pair', token: chainOf(['\ud800', 'agent-7']), expect: 'payload' },
  { name: 'sub missing', token: claims({ sub: undefined }), expect: 'subject' },
  { name: 'sub the first of the chain', token: claims({ sub: 'alice' }), expect: 'subject' },
  { name: 'sub outside the chain', token: claims({ sub: 'mallory' }), expect: 'subject' },
  { name: 'sub a list', token: claims({ sub: ['agent-7'] }), expect: 'subject' },

  // ---- roles and jti
  { name: 'roles a string', token: claims({ roles: 'TENANT_ADMIN' }), expect: 'roles' },
  { name: 'roles null', token: claims({ roles: null }), expect: 'roles' },
  { name: 'roles with a number', token: claims({ roles: [1] }), expect: 'roles' },
  { name: 'roles with an empty name', token: claims({ roles: [''] }), expect: 'roles' },
  { name: 'acl_roles an object', token: claims({ acl_roles: { analyst: true } }), expect: 'aclRoles' },
  { name: 'acl_roles with a list inside', token: claims({ acl_roles: [['analyst']] }), expect: 'aclRoles' },
  {
    name: 'acl_roles with a name of 257',
    token: claims({ acl_roles: ['r'.repeat(257)] }),
    expect: 'aclRoles',
  },
  { name: '257 acl_roles', token: claims({ acl_roles: people(257) }), expect: 'aclRoles' },
  { name: 'jti missing', token: claims({ jti: undefined }), expect: 'tokenId' },
  { name: 'jti a number', token: claims({ jti: 7 }), expect: 'tokenId' },
  { name: 'jti empty', token: claims({ jti: '' }), expect: 'tokenId' },

  // ---- times
  { name: 'iat missing', token: claims({ iat: undefined }), expect: 'issuedAt' },
  { name: 'iat a string', token: claims({ iat: String(NOW) }), expect: 'issuedAt' },
  { name: 'iat with a fraction', token: claims({ iat: NOW - 0.5 }), expect: 'issuedAt' },
  { name: 'iat negative', token: claims({ iat: -1 }), expect: 'issuedAt' },
  { name: 'exp missing', token: claims({ exp: undefined }), expect: 'expiry' },
  { name: 'exp null', token: claims({ exp: null }), expect: 'expiry' },
  { name: 'exp infinite', token: withPayload(P.replace(`${NOW + 290}`, '1e400')), expect: 'expiry' },
  { name: 'exp in milliseconds', token: claims({ exp: NOW * 1_000 }), expect: 'lifetime' },
  { name: 'exp before iat', token: claims({ iat: NOW, exp: NOW - 1 }), expect: 'order' },
  { name: 'exp equal to iat', token: claims({ iat: NOW, exp: NOW }), expect: 'order' },
  { name: 'a lifetime of 300 s', token: claims({ iat: NOW, exp: NOW + 300 }), expect: 'ok' },
  { name: 'a lifetime of 301 s', token: claims({ iat: NOW, exp: NOW + 301 }), expect: 'lifetime' },
  {
    name: 'a lifetime of 3,000 s',
    token: claims({ iat: NOW - 2_000, exp: NOW + 1_000 }),
    expect: 'lifetime',
  },
  { name: 'the last moment before exp', token: good, clock: 289.999, expect: 'ok' },
  { name: 'exp + 29.999 s', token: good, clock: 290 + 29.999, expect: 'ok' },
  { name: 'exp + 30 s', token: good, clock: 290 + 30, expect: 'expired' },
  { name: 'exp + 31 s', token: good, clock: 290 + 31, expect: 'expired' },
  { name: 'iat − 30 s', token: good, clock: -10 - 30, expect: 'ok' },
  { name: 'iat − 30.001 s', token: good, clock: -10 - 30.001, expect: 'notYet' },
  { name: 'iat − 31 s', token: good, clock: -10 - 31, expect: 'notYet' },
  { name: 'nbf within the skew', token: claims({ nbf: NOW + 30 }), expect: 'ok' },
  { name: 'nbf beyond the skew', token: claims({ nbf: NOW + 31 }), expect: 'notYet' },
  { name: 'nbf a string', token: claims({ nbf: 'soon' }), expect: 'notBeforeForm' },
  { name: 'a clock that is not a number', token: good, clock: Number.NaN, expect: 'expired' },

  // ---- issuer and audience
  { name: 'iss left out where none is configured', token: claims({ iss: undefined }), expect: 'ok' },
  { name: 'iss of a stranger where none is configured', token: claims({ iss: 'evil' }), expect: 'issuer' },
  { name: 'iss null', token: claims({ iss: null }), expect: 'issuer' },
  {
    name: 'iss as one of two',
    token: claims({ iss: 'idp' }),
    rules: { issuers: ['service', 'idp'] },
    expect: 'ok',
  },
  {
    name: 'aud as one of two',
    token: claims({ aud: ['else', 'bi'] }),
    rules: { audiences: ['osl', 'bi'] },
    expect: 'ok',
  },
  { name: 'iss as configured', token: claims({ iss: 'idp' }), rules: { issuers: ['idp'] }, expect: 'ok' },
  {
    name: 'iss missing where configured',
    token: claims({ iss: undefined }),
    rules: { issuers: ['idp'] },
    expect: 'issuer',
  },
  {
    name: 'iss of the default where another is configured',
    token: good,
    rules: { issuers: ['idp'] },
    expect: 'issuer',
  },
  { name: 'iss a list', token: claims({ iss: ['service'] }), expect: 'issuer' },
  { name: 'aud where none is configured', token: claims({ aud: 'anyone' }), expect: 'ok' },
  { name: 'aud a number where none is configured', token: claims({ aud: 7 }), expect: 'audience' },
  { name: 'aud as configured', token: claims({ aud: 'osl' }), rules: { audiences: ['osl'] }, expect: 'ok' },
  {
    name: 'aud among others',
    token: claims({ aud: ['a', 'osl'] }),
    rules: { audiences: ['osl'] },
    expect: 'ok',
  },
  { name: 'aud missing where configured', token: good, rules: { audiences: ['osl'] }, expect: 'audience' },
  {
    name: 'aud of another service',
    token: claims({ aud: 'oslo' }),
    rules: { audiences: ['osl'] },
    expect: 'audience',
  },
  {
    name: 'aud an empty list',
    token: claims({ aud: [] }),
    rules: { audiences: ['osl'] },
    expect: 'audience',
  },
];

t.test('every rule of the actor token, one row each', async (t) => {
  for (const row of TABLE) {
    await t.test(row.name, async (t) => {
      const verifier = createVerifier({
        tenant: 'acme',
        keys: row.keys ?? both,
        now: () => (NOW + (row.clock ?? 0)) * 1_000,
        ...row.rules,
      });
      t.equal(await outcome(() => verifier.verify(row.token)), row.expect);
    });
  }
});

t.test('every rule of the catalogue has a row', async (t) => {
  const covered = new Set(TABLE.map((r) => r.expect));
  const missing = Object.keys(TOKEN_FAULTS).filter((f) => !covered.has(f as TokenFault)); // its own keys
  t.same(missing, []);
});

/** Text of the message about a token with another algorithm: those of the keys here. */
const ACCEPTED = /^; accepted here: (?:none|\w+(?:, \w+)*)$/;

/** 'ok', or the rule whose exact text the error carries: so nothing of the token can be in it. */
async function outcome(verify: () => Promise<unknown>): Promise<string> {
  try {
    await verify();
    return 'ok';
  } catch (error) {
    if (!(error instanceof QueryError) || error.code !== 'E3001' || error.http !== 401) throw error;
    const text = error.message.replace('the bearer token is not valid: ', '');
    const found = Object.entries(TOKEN_FAULTS).find(
      ([, t]) => text === t || ACCEPTED.test(text.replace(t, '')),
    );
    return found?.[0] ?? error.message;
  }
}

t.test('the identity holds what the token says, and is frozen', async (t) => {
  const verifier = createVerifier({ tenant: 'acme', keys: both, now: () => NOW * 1_000 });
  const identity = await verifier.verify(good);
  t.strictSame(
    { ...identity },
    {
      tenant: 'acme',
      subject: 'agent-7',
      chain: ['alice', 'agent-7'],
      roles: ['TENANT_ADMIN'],
      aclRoles: ['analyst'],
      issuedAt: NOW - 10,
      expiresAt: NOW + 290,
      skewSeconds: 30,
      tokenId: 'token-1',
    },
  );
  for (const part of [identity, identity.chain, identity.roles, identity.aclRoles])
    t.ok(Object.isFrozen(part));
});

t.test('verified tokens are remembered', async (t) => {
  let now = NOW * 1_000;
  let asked = 0;
  const keys: KeySource = {
    candidates: (algorithm, kid) => {
      asked += 1;
      return both.candidates(algorithm, kid);
    },
  };
  const verifier = createVerifier({ tenant: 'acme', keys, now: () => now, cacheSize: 2 });
  const verify = (token: string) => outcome(() => verifier.verify(token));
  const third = claims({ jti: 'third' });

  t.equal(await verifier.verify(good), await verifier.verify(good), 'the same identity again');
  t.equal(asked, 1, 'one signature check');
  now = (NOW + 320) * 1_000;
  t.equal(await verify(good), 'expired', 'time is checked on every use');
  now = (NOW - 60) * 1_000;
  t.equal(await verify(good), 'notYet', 'also where the clock went back');
  now = NOW * 1_000;
  t.equal(asked, 1);

  t.equal(await verify(seal(H, P, hmac(OTHER_SECRET))), 'signature');
  t.equal(await verify(seal(H, P, hmac(OTHER_SECRET))), 'signature', 'a refusal is not remembered as a pass');
  t.equal(asked, 3);

  await verify(claims({ jti: 'second' }));
  await verify(third);
  t.equal(asked, 5);
  await verify(good);
  t.equal(asked, 6, 'the oldest of three was dropped from a cache of two');
  await verify(third);
  t.equal(asked, 6);

  verifier.forget();
  await verify(third);
  t.equal(asked, 7, 'forgotten when a key is withdrawn');
});

t.test('a key withdrawn while a token is being verified leaves nothing in the cache', async (t) => {
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  let withdrawn = false;
  const keys: KeySource = {
    candidates: async (algorithm, kid) => {
      if (withdrawn) return [];
      const found = await both.candidates(algorithm, kid);
      await gate;
      return found;
    },
  };
  const verifier = createVerifier({ tenant: 'acme', keys, now: () => NOW * 1_000 });
  const pending = verifier.verify(good);
  withdrawn = true;
  verifier.forget();
  release();
  await pending;
  t.equal(await outcome(() => verifier.verify(good)), 'unknownKey');
});

t.test('a source that answers with a key of another algorithm opens nothing', async (t) => {
  const keys: KeySource = { candidates: () => publicOnly.candidates('RS256', null) };
  const verifier = createVerifier({ tenant: 'acme', keys, now: () => NOW * 1_000 });
  t.equal(await outcome(() => verifier.verify(header({}, hmac(PUBLIC_PEM)))), 'signature');
});
