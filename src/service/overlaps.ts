import { mkdir, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ChangedHistory,
  endOfHistory,
  type OverlapStore,
  OverlapThread,
  type OverlapUpdate,
} from '../ask/index.js';
import { type ControlPlace, openControl, requireSchema } from '../base/control/index.js';
import { bytesOf, namesIn, removeWhole, writeWhole } from '../base/files.js';
import { sql } from '../base/sql.js';

/** Statement timeout in ms. It is long, since the history of a million rows takes up 12 MB. */
const STATEMENT_MS = 20_000;
const CONNECTIONS = 2;

/**
 * Opens the store of earlier answers, which are kept to detect answers that overlap too closely: the control database
 * if there is one, so that all gateways share it, otherwise files in the data directory.
 *
 * @param exclusively runs work while no other process of this server runs such work
 */
export function openOverlaps(
  control: ControlPlace | null,
  tenant: string,
  dataDir: string,
  exclusively: <T>(work: () => Promise<T>) => Promise<T>,
): OverlapStore {
  return control === null
    ? fileOverlaps(join(dataDir, 'overlaps'), exclusively)
    : sharedOverlaps(control, tenant);
}

const READ = sql`select key, state from osl_control.overlap_history where tenant = $1 and key = any($2)`;
const WRITE = sql`
insert into osl_control.overlap_history (tenant, key, ends_at, state)
values ($1, $2, to_timestamp($3::float8 / 1000), $4)
on conflict (tenant, key) do update set ends_at = excluded.ends_at, state = excluded.state`;
const SWEEP = sql`delete from osl_control.overlap_history where ends_at < clock_timestamp() - interval '1 day'`;

function sharedOverlaps(location: ControlPlace, tenant: string): OverlapStore {
  const database = openControl(location, { connections: CONNECTIONS, statementMs: STATEMENT_MS });
  const thread = new OverlapThread();
  let hasSchema = false;
  const requireReady = async (): Promise<void> => {
    if (!hasSchema) await requireSchema(database);
    hasSchema = true;
  };
  const readStates = async (queries: Pick<typeof database, 'query'>, keys: readonly string[]) => {
    const rows = await queries.query(READ, [tenant, keys]);
    const states = new Map(rows.map((row) => [row['key'], row['state']]));
    return keys.map((key) => {
      const state = states.get(key);
      return state instanceof Buffer ? state : null;
    });
  };
  return Object.freeze({
    read: async (keys: readonly string[]) => {
      await requireReady();
      return readStates(database, keys);
    },
    update: async <T>(
      keys: readonly string[],
      work: (stored: readonly (Buffer | null)[]) => Promise<OverlapUpdate<T>>,
    ): Promise<T> => {
      await requireReady();
      return database.transaction(`overlaps ${tenant}`, async (tx) => {
        const { result, changed } = await work(await readStates(tx, keys));
        for (const { key, bytes, endsAt } of changed) await tx.query(WRITE, [tenant, key, endsAt, bytes]);
        if (changed.length > 0) await tx.query(SWEEP);
        return result;
      });
    },
    thread,
    close: async () => {
      await thread.close();
      await database.close();
    },
  });
}

function fileOverlaps(dir: string, exclusively: <T>(work: () => Promise<T>) => Promise<T>): OverlapStore {
  const thread = new OverlapThread();
  const pathOf = (key: string): string => join(dir, key);
  const read = (keys: readonly string[]) => Promise.all(keys.map((key) => bytesOf(pathOf(key))));
  const store = async (changed: readonly ChangedHistory[]): Promise<void> => {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const { key, bytes, endsAt } of changed) {
      await writeWhole(pathOf(key), bytes);
      await utimes(pathOf(key), endsAt / 1_000, endsAt / 1_000);
    }
  };
  // A file that this cannot remove is overwritten when a new history starts under its key.
  let previousUpdate: Promise<unknown> = sweep(dir).catch(() => undefined);
  return Object.freeze({
    read,
    update: <T>(
      keys: readonly string[],
      work: (stored: readonly (Buffer | null)[]) => Promise<OverlapUpdate<T>>,
    ): Promise<T> => {
      const update = previousUpdate.then(() =>
        exclusively(async () => {
          const { result, changed } = await work(await read(keys));
          if (changed.length > 0) await store(changed);
          return result;
        }),
      );
      previousUpdate = update.catch(() => undefined);
      return update;
    },
    thread,
    close: async () => {
      await previousUpdate;
      await thread.close();
    },
  });
}

/**
 * Removes histories that have ended. The modification time of a file is the time at which its history ends, unless the
 * file was restored or its writer was killed: only the history itself can say that it has ended.
 */
async function sweep(dir: string): Promise<void> {
  for (const name of await namesIn(dir)) {
    const path = join(dir, name);
    const { mtimeMs } = await stat(path);
    if (mtimeMs >= Date.now()) continue;
    const endsAt = endOfHistory((await bytesOf(path)) ?? Buffer.alloc(0)) ?? mtimeMs;
    if (endsAt < Date.now()) await removeWhole(path);
    else await utimes(path, endsAt / 1_000, endsAt / 1_000);
  }
}
