import { hmac, OTHER_RSA, OTHER_SECRET, PUBLIC_PEM, RSA, rsa, type Signer } from '../../../policy/tokens.js';
import { freshAddress } from '../../../surfaces/rest/fixture.js';
import type { Heard } from '../surfaces.js';
import type { World } from '../world.js';
import type { Check } from './check.js';

/** A token that differs from a good one of `user:ann`: members that are undefined are left out. */
interface Token {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** The tenant's own key unless told. */
  readonly signer?: Signer;
}

const now = (): number => Math.floor(Date.now() / 1_000);

async function ask(world: World, name: string, { header = {}, claims = {}, signer }: Token): Promise<Heard> {
  const issued = now() - 1;
  const authorization = `Bearer ${world.seal(
    { alg: 'HS256', typ: 'service-actor+jwt', ...header },
    {
      version: 2,
      tenant_id: 'library',
      chain: ['user:ann'],
      sub: 'user:ann',
      roles: [],
      acl_roles: ['reader'],
      iss: 'service',
      iat: issued,
      exp: issued + 290,
      jti: 'token-1',
      ...claims,
    },
    signer,
  )}`;
  const headers = { authorization, 'content-type': 'application/json' };
  const body = { osql: 'select id from book' };
  // From an address of its own: strangers have a limit there.
  const sent = { method: 'POST', headers, body, from: freshAddress() };
  return world.send('/osl/query', sent, `token, ${name}`);
}

type Tokens = () => Readonly<Record<string, Token>>;

/** Each of `good` is answered, and each of `bad` refused with 401 E3001, never as somebody without a token. */
function tokens(good: Tokens, bad: Tokens): Check {
  return async (t, world) => {
    for (const [name, token] of Object.entries(good())) {
      const heard = await ask(world, name, token);
      t.same([heard.status, heard.rows.length], [200, 12], name);
    }
    for (const [name, token] of Object.entries(bad()))
      t.match(await ask(world, name, token), { status: 401, code: 'E3001', rows: [] }, name);
  };
}

const claim = (name: string, ...values: readonly unknown[]): Readonly<Record<string, Token>> =>
  Object.fromEntries(values.map((value) => [`${name} ${String(value)}`, { claims: { [name]: value } }]));

/** A token that was issued and ends so many seconds from now. */
const times = (iat: number, exp: number): Token => ({ claims: { iat: now() + iat, exp: now() + exp } });

const RS256 = { alg: 'RS256' };

export const TOKEN_CHECKS = {
  'auth.2.2': tokens(
    () => ({ 'as the contract has it': {} }),
    () => ({
      'signed with another secret': { signer: hmac(OTHER_SECRET) },
      'signed with nothing': { signer: () => Buffer.alloc(0) },
      ended: times(-300, -35),
      'of no version': { claims: { version: undefined } },
      'of no shape': { header: { typ: undefined }, claims: { chain: 'user:ann' } },
      'with an end that is not a number': { claims: { exp: 'tomorrow' } },
    }),
  ),
  'auth.3.typ': tokens(
    () => ({ 'as the contract has it': {} }),
    () => ({
      'typ JWT': { header: { typ: 'JWT' } },
      'typ missing': { header: { typ: undefined } },
    }),
  ),
  'auth.3.alg': tokens(
    () => ({ HS256: {}, RS256: { header: RS256, signer: rsa(RSA.privateKey) } }),
    () => ({
      none: { header: { alg: 'none' } },
      HS512: { header: { alg: 'HS512' } },
      RS512: { header: { alg: 'RS512' }, signer: rsa(RSA.privateKey, 'RSA-SHA512') },
    }),
  ),
  'auth.3.version': tokens(
    () => ({ two: {} }),
    () => claim('version', 1, 3, '2', undefined),
  ),
  'auth.3.tenant_id': tokens(
    () => ({ 'its own': {} }),
    () => claim('tenant_id', 'other', undefined),
  ),
  'auth.3.chain': tokens(
    () => ({ 'of two': { claims: { chain: ['user:root', 'user:ann'] } } }),
    () => claim('chain', [], undefined, 'user:ann', [7, 'user:ann']),
  ),
  'auth.3.sub': tokens(
    () => ({ 'the last': { claims: { chain: ['user:root', 'user:ann'] } } }),
    () => ({
      'the first': { claims: { chain: ['user:root', 'user:ann'], sub: 'user:root' } },
      'not in the chain': { claims: { sub: 'user:ada' } },
    }),
  ),
  'auth.3.iat': tokens(
    () => ({ '300 s': times(-1, 299), 'ended 25 s ago': times(-300, -25), 'begins in 25 s': times(25, 300) }),
    () => ({
      '301 s': times(-1, 300),
      'ended 35 s ago': times(-300, -35),
      'begins in 35 s': times(35, 300),
      ...claim('iat', undefined),
      ...claim('exp', undefined),
      ...claim('jti', undefined),
    }),
  ),
  'auth.5': tokens(
    () => ({ "the tenant's secret": {} }),
    () => ({ 'another secret': { signer: hmac(OTHER_SECRET) } }),
  ),
  'auth.5.2': tokens(
    () => ({ "the issuer's key": { header: RS256, signer: rsa(RSA.privateKey) } }),
    () => ({
      'another key': { header: RS256, signer: rsa(OTHER_RSA.privateKey) },
      'the public key as a secret': { signer: hmac(PUBLIC_PEM) },
    }),
  ),
  'auth.5.4': tokens(
    () => ({ 'version 2': {} }),
    () => ({
      ...claim('version', undefined),
      ...claim('chain', undefined),
      'scopes in place of roles': { claims: { version: 1, scopes: ['osl:read'], acl_roles: undefined } },
    }),
  ),
  'limits.token-lifetime': tokens(
    () => ({ '300 s': times(-1, 299), 'ended 25 s ago': times(-300, -25) }),
    () => ({ '301 s': times(-1, 300), 'ended 35 s ago': times(-300, -35), 'begins in 35 s': times(35, 300) }),
  ),
} satisfies Readonly<Record<string, Check>>;
