import { mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Test, test } from 'tap';
import { decide, haveAnswered } from '../../src/ask/data/overlap/decide.js';
import type { OverlapStore } from '../../src/ask/index.js';
import { openOverlaps } from '../../src/service/overlaps.js';
import { controlHouse, migrated, placeOf, SKIP } from './support.js';

const endsAt = Date.now() + 60_000;

/** Adds a byte to a history, slowly. */
const add = (store: OverlapStore, byte: number): Promise<number> =>
  store.update(['one'], async ([before]) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    const bytes = Buffer.concat([before ?? Buffer.alloc(0), Buffer.from([byte])]);
    return { result: bytes.length, changed: [{ key: 'one', bytes, endsAt }] };
  });

async function sharesHistories(t: Test, a: OverlapStore, b: OverlapStore): Promise<void> {
  t.same(await a.read(['one', 'two']), [null, null]);
  const lengths = await Promise.all([1, 2, 3, 4, 5, 6].map((byte) => add(byte % 2 === 0 ? a : b, byte)));
  t.same([...lengths].sort(), [1, 2, 3, 4, 5, 6], 'each sees the answers before');
  const [one, two] = await a.read(['one', 'two']);
  t.equal(one?.length, 6);
  t.equal(two, null);
  const fails = a.update(['one'], () => Promise.reject(new Error('no')));
  await t.rejects(fails, { message: 'no' });
  t.equal(await add(b, 7), 7, 'after a failure too');
}

test('gateways share histories in the control database', { skip: SKIP }, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  const stores = [house.gateway, house.gateway].map((place) =>
    openOverlaps(placeOf(place), 'acme', '/nowhere', (work) => work()),
  );
  for (const store of stores) t.teardown(() => store.close());
  const [a, b] = stores;
  if (a === undefined || b === undefined) throw new Error('two gateways');
  await sharesHistories(t, a, b);
  const other = openOverlaps(placeOf(house.gateway), 'beta', '/nowhere', (work) => work());
  t.teardown(() => other.close());
  t.same(await other.read(['one']), [null], 'of another tenant');
});

test('a gateway alone keeps histories in its data directory', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'osl-overlaps-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  const store = openOverlaps(null, 'acme', dir, (work) => work());
  await sharesHistories(t, store, store);
  await store.update(['old'], async () => ({
    result: null,
    changed: [{ key: 'old', bytes: Buffer.from('x'), endsAt: Date.now() - 1_000 }],
  }));
  await store.close();
  const again = openOverlaps(null, 'acme', dir, (work) => work());
  await again.update([], async () => ({ result: null, changed: [] }));
  const [one, old] = await again.read(['one', 'old']);
  t.equal(one?.length, 7, 'after a restart');
  t.equal(old, null, 'what has ended is removed');
});

test('a history that has not ended stays, whatever the modification time of its file', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'osl-overlaps-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  const sets = [{ hashes: ['aabbcc'], digits: 2, hasUnit: false, minimum: 1, figures: ['count'] }];
  const answer = { digest: 'question', sets, minimum: 1 };
  const store = openOverlaps(null, 'acme', dir, (work) => work());
  await store.update(['ended', 'lasts'], async (stored) =>
    decide({
      ...answer,
      keys: [
        ['ended', -1],
        ['lasts', 1],
      ],
      stored,
    }),
  );
  await store.close();
  // As after a restore, or where the writer was killed before it set the time.
  for (const key of ['ended', 'lasts']) utimesSync(join(dir, 'overlaps', key), 1, 1);
  const again = openOverlaps(null, 'acme', dir, (work) => work());
  await again.update([], async () => ({ result: null, changed: [] }));
  const [ended, lasts] = await again.read(['ended', 'lasts']);
  t.equal(ended, null);
  t.ok(haveAnswered([lasts ?? null], 'question'), 'the answer that was given is remembered');
  await again.close();
});
