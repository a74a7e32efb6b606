import { keep, kept, type SignedIn, signedInCaller } from 'osl-console/shell/sign-in';
import { replaceBlockedStorage } from 'osl-console/shell/storage';
import { test } from 'tap';

const FAR = Math.floor(Date.now() / 1_000) + 3_600;

function tokenOf(subject: string, number: number): string {
  const claims = { sub: subject, chain: [subject], exp: FAR, jti: `${number}` };
  return `eyJ.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
}

test('a renewal that ends after the user has left changes nothing that the tab keeps', async (t) => {
  const items = new Map<string, string>();
  const storage = {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    clear: () => items.clear(),
  };
  let answer: () => Response = () => new Response();
  const before = { storage: Reflect.get(globalThis, 'sessionStorage'), fetch: globalThis.fetch };
  t.teardown(() => {
    Reflect.set(globalThis, 'sessionStorage', before.storage);
    globalThis.fetch = before.fetch;
  });
  Object.defineProperty(globalThis, 'sessionStorage', { value: storage, configurable: true, writable: true });
  globalThis.fetch = async () => answer();

  const ann: SignedIn = { kind: 'demo', chain: ['user:ann'], token: tokenOf('user:ann', 0) };
  const bob: SignedIn = { kind: 'demo', chain: ['user:bob'], token: tokenOf('user:bob', 0) };
  const leavings: readonly (readonly [how: string, leave: () => void, left: SignedIn | null])[] = [
    ['signed out', () => storage.clear(), null],
    ['signed in as somebody else', () => keep(bob), bob],
  ];
  for (const [how, leave, left] of leavings) {
    let ended = 0;
    const caller = signedInCaller(ann, { admin: false, stored: true, ended: () => void ended++ });
    answer = () => Response.json({ token: tokenOf('user:ann', 1) });
    await caller?.renewed();
    t.strictSame(kept(), { ...ann, token: tokenOf('user:ann', 1) }, 'a renewed token is kept');
    await caller?.renewed();
    const renewed = caller?.renewed();
    leave();
    await renewed;
    t.strictSame(kept(), left, how);
    answer = () => Response.json({ code: 'E3001', detail: 'no', status: 401 }, { status: 401 });
    await t.rejects(
      async () => {
        await caller?.renewed();
      },
      { name: 'EndedError' },
    );
    t.equal(ended, 0, 'the end of a token that nobody uses is no end');
    storage.clear();
  }
});

test('storage that the browser blocks is replaced for as long as the page is open', async (t) => {
  const blocked = (): never => {
    throw new DOMException('access is denied for this document', 'SecurityError');
  };
  const place: Parameters<typeof replaceBlockedStorage>[0] = Object.defineProperties(Object.create(null), {
    localStorage: { get: blocked, configurable: true },
    sessionStorage: { get: blocked, configurable: true },
  });
  replaceBlockedStorage(place);
  for (const storage of [place.localStorage, place.sessionStorage]) {
    storage.setItem('a', '1');
    t.equal(storage.getItem('a'), '1');
    storage.clear();
    t.equal(storage.getItem('a'), null);
  }
  const { localStorage } = place;
  replaceBlockedStorage(place);
  t.equal(place.localStorage, localStorage, 'storage that works is left alone');
});
