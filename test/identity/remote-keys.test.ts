import t from 'tap';
import { fetchDocument, isFetchable, RemoteKeys } from '../../src/model/identity/remote-keys.js';
import { KeyServer, type Signer, signer } from './signers.js';

const MINUTE = 60_000;
const OLD = signer('old', 'RS256');
const NEXT = signer('next', 'ES256');
const THIRD = signer('third', 'EdDSA');

interface World {
  readonly server: KeyServer;
  readonly keys: RemoteKeys;
  readonly logged: string[];
  now: number;
  changes: number;
}

async function world(t: Tap, first: readonly Signer[]): Promise<World> {
  const server = new KeyServer();
  server.keys = first;
  await server.start();
  const logged: string[] = [];
  const say = (message: string): void => void logged.push(message);
  const made = { server, logged, now: 0, changes: 0 };
  const keys = new RemoteKeys({
    issuer: 'https://idp.example',
    url: new URL(server.url),
    algorithms: ['RS256', 'ES256', 'EdDSA'],
    refreshMs: 5 * MINUTE,
    coolDownMs: 30_000,
    staleMs: 60 * MINUTE,
    fetch: fetchDocument,
    log: { info: say, warn: say, error: say },
    now: () => made.now,
    onChange: () => {
      made.changes += 1;
    },
  });
  t.teardown(async () => {
    keys.close();
    await server.stop();
  });
  return Object.assign(made, { keys });
}
type Tap = { teardown(work: () => Promise<void>): void };

const kids = async (keys: RemoteKeys, key: Signer, kid: string | null = key.kid) =>
  (await keys.candidates(key.algorithm, kid)).map((found) => found.kid);

t.test('a set is fetched once for all who ask, and a key is good for its own algorithm alone', async (t) => {
  const { keys, server } = await world(t, [OLD, NEXT]);
  const [a, b] = await Promise.all([kids(keys, OLD), kids(keys, NEXT)]);
  t.same([a, b], [['old'], ['next']]);
  t.equal(server.fetched, 1);
  t.same(await keys.candidates('ES256', 'old'), [], 'not another algorithm');
  t.same(await keys.candidates('HS256', 'old'), [], 'never a secret');
});

t.test('two keys rotate: a key id that is not known is looked for at most once in a cool-down', async (t) => {
  const w = await world(t, [OLD]);
  t.same(await kids(w.keys, OLD), ['old']);
  w.server.keys = [OLD, NEXT];
  t.same(await kids(w.keys, NEXT), [], 'the set was fetched a moment ago');
  t.equal(w.server.fetched, 1);
  w.now += 31_000;
  t.same(await kids(w.keys, NEXT), ['next']);
  t.same(await kids(w.keys, OLD), ['old'], 'both, while they rotate');
  t.equal(w.changes, 1, 'what was verified is verified anew');
  for (let i = 0; i < 50; i++) t.same(await kids(w.keys, THIRD, `made-up-${i}`), []);
  t.equal(w.server.fetched, 2, 'whoever makes up key ids costs the issuer nothing');
  w.now += 31_000;
  await Promise.all(Array.from({ length: 50 }, (_, i) => kids(w.keys, THIRD, `made-up-${i}`)));
  t.equal(w.server.fetched, 3, 'and all of them together one request');
});

for (const fault of ['status', 'nonsense', 'endless', 'redirect'] as const) {
  t.test(
    `while the issuer answers with a fault (${fault}) its last keys stay good, for so long`,
    async (t) => {
      const w = await world(t, [OLD]);
      t.same(await kids(w.keys, OLD), ['old']);
      w.server.fault = fault;
      w.now += 31_000;
      t.same(await kids(w.keys, NEXT), [], 'asked, and not answered');
      t.equal(w.server.fetched, 2, 'no redirect is followed');
      t.same(await kids(w.keys, OLD), ['old'], 'stale');
      t.same(w.logged, ['the keys of an issuer cannot be fetched'], 'said once');
      w.now += 61 * MINUTE;
      await t.rejects(kids(w.keys, OLD), { code: 'E5033' }, 'too old to be believed');
      w.server.fault = null;
      w.now += 31_000;
      t.same(await kids(w.keys, OLD), ['old']);
      t.same(w.logged.at(-1), 'the keys of an issuer can be had again');
    },
  );
}

t.test(
  'an issuer that does not answer at the first token makes it wait, and is not asked for each',
  async (t) => {
    const w = await world(t, [OLD]);
    await w.server.stop();
    await t.rejects(kids(w.keys, OLD), { code: 'E5033', hint: /in 30 s/ });
    await w.server.start();
    await t.rejects(kids(w.keys, OLD), { code: 'E5033' }, 'in the cool-down');
    w.now += 31_000;
    t.same(await kids(w.keys, OLD), ['old']);
  },
);

t.test(
  'what a set holds beside: secrets, private keys, weak ones and other algorithms are passed over',
  async (t) => {
    const w = await world(t, [OLD]);
    const odd = (jwk: object): Signer => ({ ...OLD, jwk: { ...jwk } });
    w.server.keys = [
      odd({
        kty: 'oct',
        k: Buffer.from('a secret that is long enough to be taken').toString('base64url'),
        kid: 'oct',
      }),
      odd({ ...OLD.jwk, kid: 'pss', alg: 'PS256' }),
      odd({ ...OLD.jwk, kid: 'enc', use: 'enc' }),
      odd({ ...NEXT.jwk, kid: 'private', d: 'AA' }),
      OLD,
    ];
    t.same(await kids(w.keys, OLD, null), ['old']);
    t.same(await kids(w.keys, NEXT, null), []);
  },
);

t.test('documents are fetched by https, and by http from this machine alone', async (t) => {
  for (const url of [
    'https://idp.example/jwks',
    'http://127.0.0.1:8/x',
    'http://[::1]:8/x',
    'http://localhost/x',
  ])
    t.ok(isFetchable(new URL(url)), url);
  for (const url of [
    'http://idp.example/jwks',
    'http://10.0.0.1/jwks',
    'http://127.0.0.1.evil.example/x',
    'file:///etc/passwd',
    'https://user:password@idp.example/',
    'data:application/json,{}',
  ])
    t.notOk(isFetchable(new URL(url)), url);
  await t.rejects(fetchDocument(new URL('http://10.0.0.1/jwks')), /neither https nor on this machine/);
});
