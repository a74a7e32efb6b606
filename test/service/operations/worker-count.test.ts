import { availableParallelism } from 'node:os';
import t from 'tap';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { poolSizeOf } from '../../../src/service/engines.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { modelSlots } from '../../../src/service/share.js';
import { workerSettings, workersFor } from '../../../src/service/workers.js';

/** How many processes `--workers` means, and how many sessions with the database each has. */

const manifestOf = (kind: string) =>
  parseManifest(
    `version: 1
connectors:
  db: { kind: ${kind}, tables: { shop.a: { columns: { id: { type: int4 } } } } }
entities:
  a: { source: db.shop.a, primary_key: [id], columns: { id: { column: id } } }
`.replace('kind: postgres,', 'kind: postgres, url_env: X,'),
    'manifest.yaml',
  );
const NATIVE = manifestOf('postgres');
const EMBEDDED = manifestOf('pglite');
const found = [...NATIVE.connectors.values()][0];
if (found === undefined) throw new Error('there is no connector');
const NATIVE_DB = found;
const settings = (env: Readonly<Record<string, string>>) => settingsFrom(env, process.cwd());

t.test('auto is a process for each processor, and one where several cannot be', async (t) => {
  const auto = settings({ OSL_WORKERS: 'auto' });
  t.equal(workersFor(auto, NATIVE), Math.min(availableParallelism(), auto.poolSize));
  t.equal(workersFor(settings({ OSL_WORKERS: 'auto', OSL_POOL_SIZE: '1' }), NATIVE), 1);
  t.equal(workersFor(auto, EMBEDDED), 1);
  t.equal(workersFor(settings({}), NATIVE), 1, 'unless asked for, there is one');
});

t.test('a number is what was asked for, or refused with the reason', async (t) => {
  t.equal(workersFor(settings({ OSL_WORKERS: '3' }), NATIVE), 3);
  const refused: readonly (readonly [Readonly<Record<string, string>>, typeof NATIVE, RegExp])[] = [
    [{ OSL_WORKERS: '2' }, EMBEDDED, /--workers 2: connector `db` is an embedded database/],
    [
      { OSL_WORKERS: '3', OSL_POOL_SIZE: '2' },
      NATIVE,
      /each worker needs a database session, and the smallest pool has 2/,
    ],
  ];
  for (const [env, manifest, reason] of refused)
    t.throws(() => workersFor(settings(env), manifest), reason, JSON.stringify(env));
});

t.test('the sessions with the database are shared out, all of them and none twice', async (t) => {
  for (const pool of [1, 2, 7, 10, 64])
    for (let count = 1; count <= pool && count <= 8; count++) {
      const all = settings({ OSL_POOL_SIZE: `${pool}` });
      const shares = Array.from({ length: count }, (_, i) =>
        poolSizeOf(NATIVE_DB, workerSettings(all, i + 1, count)),
      );
      t.equal(
        shares.reduce((sum, share) => sum + share, 0),
        pool,
      );
      t.ok(Math.max(...shares) - Math.min(...shares) <= 1 && Math.min(...shares) >= 1, `${pool}: ${shares}`);
    }
});

t.test('requests to models are shared out, and each worker has one at least', async (t) => {
  const shares = (total: number, count: number): readonly number[] =>
    Array.from({ length: count }, (_, i) => {
      const { share } = workerSettings(settings({}), i + 1, count).content;
      return share === undefined ? 0 : modelSlots(total, share);
    });
  t.same(shares(4, 1), [4]);
  t.same(shares(4, 3), [2, 1, 1]);
  t.same(shares(7, 2), [4, 3]);
  t.same(shares(2, 4), [1, 1, 1, 1], 'more than there are, where there are too few');
});
