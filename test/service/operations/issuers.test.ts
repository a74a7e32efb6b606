import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { actorClaims, KeyServer, type Signer, sealWithSecret, signer } from '../../identity/signers.js';
import { osl, type Server } from '../../tools/cli/support.js';
import { asked, type Place, place, served } from './support.js';

const AUDIENCE = 'https://osl.example';
const ISSUER = 'https://tokens.example';
const FILED = 'urn:filed';

const seconds = (): number => Math.floor(Date.now() / 1_000);

function payload(changes: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return { ...actorClaims(ISSUER, AUDIENCE), ...changes };
}

const actor = (
  key: Signer,
  changes: Readonly<Record<string, unknown>> = {},
  typ = 'service-actor+jwt',
): string => key.seal({ typ }, payload(changes));

async function reply(
  server: Server,
  token: string,
): Promise<{ readonly status: number; readonly code: unknown }> {
  const said = await asked(
    server,
    '/osl/query',
    { osql: 'select 1 as a' },
    { authorization: `Bearer ${token}` },
  );
  const body: { code?: unknown } = JSON.parse(said.body);
  return { status: said.status, code: body.code ?? null };
}

function withIssuers(where: Place, keys: KeyServer, filed: Signer): string {
  const file = join(where.dataDir, '..', 'issuers.yaml');
  writeFileSync(join(where.dataDir, '..', 'filed.json'), JSON.stringify({ keys: [filed.jwk] }));
  const remote = {
    issuer: ISSUER,
    tokens: 'actor',
    jwks_url: keys.url,
    audiences: [AUDIENCE, 'osl'],
    cool_down_seconds: 1,
    refresh_seconds: 2,
    clock_skew_seconds: 120,
  };
  const other = {
    issuer: FILED,
    tokens: 'actor',
    keys: ['filed.json'],
    audiences: ['osl'],
    clock_skew_seconds: 0,
  };
  writeFileSync(file, JSON.stringify({ issuers: [remote, other] }));
  return file;
}

t.test(
  'issuers with keys by URL and in a file, each with its own names, audiences, algorithms and clock',
  async (t) => {
    const [rsa, curve, edwards] = [
      signer('rsa', 'RS256'),
      signer('curve', 'ES256'),
      signer('edwards', 'EdDSA'),
    ];
    const keys = new KeyServer();
    keys.keys = [rsa, curve];
    await keys.start();
    t.teardown(() => keys.stop());
    const where = place();
    const server = await served(t, where, { OSL_ISSUERS: withIssuers(where, keys, edwards) });
    const good = { status: 200, code: null };
    const bad = { status: 401, code: 'E3001' };

    t.same(await reply(server, actor(rsa)), good, 'RS256');
    t.same(await reply(server, actor(curve)), good, 'ES256');
    t.same(await reply(server, actor(edwards, { iss: FILED, aud: 'osl' })), good, 'EdDSA');
    t.same(await reply(server, actor(rsa, { aud: ['elsewhere', 'osl'] })), good, 'one of several audiences');

    const refused: readonly (readonly [string, string])[] = [
      ['an audience of another service', actor(rsa, { aud: 'https://other.example' })],
      ['no audience', actor(rsa, { aud: undefined })],
      ['an issuer that nobody named', actor(rsa, { iss: 'https://evil.example' })],
      ['no issuer: the default one has none of these keys', actor(rsa, { iss: undefined })],
      ["another issuer's name under this one's key", actor(rsa, { iss: FILED, aud: 'osl' })],
      ["this issuer's name under the other one's key", actor(edwards)],
      [
        'a key with the algorithm of another',
        rsa.seal({ typ: 'service-actor+jwt', alg: 'ES256' }, payload()),
      ],
      ['a public key taken for a secret', secretOf(rsa)],
      ['a key id that nobody has', rsa.seal({ typ: 'service-actor+jwt', kid: 'made-up' }, payload())],
      ['another type', actor(rsa, {}, 'at+jwt')],
      ['expired', actor(rsa, { iat: seconds() - 500, exp: seconds() - 200 })],
      [
        'no skew for the issuer that has none',
        actor(edwards, { iss: FILED, aud: 'osl', iat: seconds() - 60, exp: seconds() - 5 }),
      ],
      ['of another tenant', actor(rsa, { tenant_id: 'other' })],
      ['longer than 300 s', actor(rsa, { exp: seconds() + 400 })],
    ];
    for (const [what, token] of refused) t.same(await reply(server, token), bad, what);
    t.same(
      await reply(server, actor(rsa, { iat: seconds() - 200, exp: seconds() - 90 })),
      good,
      'within the skew of its issuer',
    );

    await t.test(
      'a rotation is noticed at the first token of the new key, and a withdrawn one is refused',
      async (t) => {
        const next = signer('rsa-2', 'RS256');
        const verified = actor(rsa);
        t.same(await reply(server, verified), good);
        keys.keys = [next, rsa, curve];
        await until(async () => (await reply(server, actor(next))).status === 200);
        t.same(await reply(server, verified), good, 'two keys while they rotate');
        keys.keys = [next, curve];
        await until(async () => (await reply(server, verified)).status === 401);
        t.same(await reply(server, verified), bad, 'also where its token was verified before');
        t.same(await reply(server, actor(next)), good);
      },
    );

    await t.test(
      'while the issuer does not answer its keys stay good, and the other issuer is not touched',
      async (t) => {
        const fetched = keys.fetched;
        keys.fault = 'status';
        await until(async () => keys.fetched > fetched + 1);
        t.same(await reply(server, actor(curve)), good, 'stale');
        t.same(await reply(server, actor(edwards, { iss: FILED, aud: 'osl' })), good);
        t.match(server.stderr, /the keys of an issuer cannot be fetched/);
        server.hangUp();
        await server.said('reloaded: ');
        t.same(await reply(server, actor(curve)), good, 'a reload loses nothing either');
      },
    );
  },
);

t.test(
  'a server begins while its issuer is away, and says of its tokens that they cannot be judged',
  async (t) => {
    const key = signer('k', 'ES256');
    const keys = new KeyServer();
    keys.keys = [key];
    await keys.start();
    await keys.stop();
    const where = place();
    const env = { OSL_ISSUERS: withIssuers(where, keys, signer('f', 'EdDSA')), OSL_LOCAL_TOKENS: 'on' };
    const server = await served(t, where, env);
    const minted = await osl(['token', '--data-dir', where.dataDir, '--subject', 'user:analyst']);
    t.match(minted.stderr, /has issuers: tokens of its own key are for development/);
    t.equal((await reply(server, minted.stdout.trim())).status, 200);
    t.same(await reply(server, actor(key)), { status: 503, code: 'E5033' });
    await keys.start();
    t.teardown(() => keys.stop());
    await until(async () => (await reply(server, actor(key))).status === 200);
  },
);

/** What who mistakes a public key for a secret would verify. */
function secretOf(key: Signer): string {
  const pem = key.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return sealWithSecret(pem, { typ: 'service-actor+jwt', kid: key.kid }, payload());
}

/** Generous: it ends as soon as it holds. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (await holds()) return;
    await sleep(100);
  }
  throw new Error('it did not come to hold within a minute');
}
