import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Test, test } from 'tap';
import { EXTENT_BYTES, Spool, SpoolRoom } from '../../src/engine/spool/spool.js';
import { fc } from '../support/fast-check.js';

interface Room {
  readonly room: SpoolRoom;
  readonly dir: string;
  readonly faults: unknown[];
}

function roomOf(t: Test, extents: number, Kind: typeof SpoolRoom = SpoolRoom): Room {
  const dir = mkdtempSync(join(tmpdir(), 'osl-spool-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => void faults.push(error);
  return { room: new Kind({ dir, bytes: extents * EXTENT_BYTES, onFault }), dir, faults };
}

async function opened(room: SpoolRoom, party = 'user:ada'): Promise<Spool> {
  const spool = await Spool.open(room, party);
  if (spool === null) throw new Error('no room');
  return spool;
}

const UNCOUNTED = { wait: async () => undefined, hold: () => undefined };

/** Row `number`, of `length` bytes that tell it from every other. */
function row(number: number, length: number): Buffer {
  const bytes = Buffer.alloc(length, number % 251);
  bytes.writeUInt32BE(number, 0);
  return bytes;
}

/** Takes until `wanted` bytes have come, or all. */
async function taken(spool: Spool, wanted: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for (let bytes = 0; bytes < wanted; ) {
    const some = await spool.take(UNCOUNTED);
    if (some === null) break;
    for (const part of some) {
      parts.push(part.bytes);
      bytes += part.bytes.length;
    }
  }
  return Buffer.concat(parts);
}

test('what is put is taken, in order, whatever the pace of both', async (t) => {
  const lengths = fc.array(fc.integer({ min: 4, max: 700_000 }), { minLength: 1, maxLength: 30 });
  const pauses = fc.array(fc.integer({ min: 0, max: 3_000_000 }), { minLength: 1, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(lengths, pauses, fc.integer({ min: 2, max: 12 }), async (sizes, reads, extents) => {
      const { room } = roomOf(t, extents);
      const spool = await opened(room);
      const all = sizes.map((length, number) => row(number, length));
      const writer = (async () => {
        for (const bytes of all) await spool.put({ bytes, rows: 1 });
        spool.end();
      })();
      const got: Buffer[] = [];
      for (let at = 0; ; at++) {
        const some = await taken(spool, reads[at % reads.length] ?? 1);
        got.push(some);
        if (some.length === 0 && at >= reads.length) break;
        if (at % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await writer;
      spool.close();
      return Buffer.concat(got).equals(Buffer.concat(all));
    }),
    { numRuns: 40 },
  );
});

test('the file has no name, and what it holds is not what was put', async (t) => {
  const { room, dir } = roomOf(t, 8);
  const spool = await opened(room);
  const secret = Buffer.from('the secret of the house '.repeat(20_000));
  await spool.put({ bytes: secret, rows: 1 });
  t.same(readdirSync(dir), []);
  const held = readdirSync('/proc/self/fd')
    .map((fd) => `/proc/self/fd/${fd}`)
    .filter((path) => targetOf(path).startsWith(dir));
  t.equal(held.length, 1);
  t.notOk(held.some((path) => readFileSync(path).includes('secret')));
  t.ok((await taken(spool, 1)).equals(secret));
  spool.close();
});

/** Returns the name of an open file; nothing if it is closed by now. */
function targetOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

test('each party has half of the room, and gives it back', async (t) => {
  const { room } = roomOf(t, 4);
  const first = await opened(room);
  const second = await opened(room);
  t.equal(await Spool.open(room, 'user:ada'), null, 'half of it');
  const others = [await opened(room, 'user:eve'), await opened(room, 'user:eve')];
  t.equal(await Spool.open(room, 'user:bob'), null, 'all of it');
  for (const spool of [first, second, ...others]) spool.close();
  while (room.stats().bytes > 0) await new Promise((resolve) => setImmediate(resolve));
  t.match(room.stats(), { bytes: 0, answers: 0, spooled: 4 });
});

test('a disk that is full: what waits is in memory, and nothing is lost', async (t) => {
  class FullDisk extends SpoolRoom {
    override async open(): Promise<FileHandle> {
      await (await super.open()).close();
      return open('/dev/full', 'r+');
    }
  }
  const { room, faults } = roomOf(t, 8, FullDisk);
  const spool = await opened(room);
  const all = Array.from({ length: 8 }, (_, number) => row(number, 200_000));
  const writer = (async () => {
    for (const bytes of all) await spool.put({ bytes, rows: 1 });
    spool.end();
  })();
  while (faults.length === 0) await new Promise((resolve) => setImmediate(resolve));
  t.ok((await taken(spool, Number.POSITIVE_INFINITY)).equals(Buffer.concat(all)));
  await writer;
  t.match(faults, [{ code: 'ENOSPC' }], 'told once');
  spool.close();
});

test('what a process left that was killed while it made a file is gone with the next start', (t) => {
  const { dir } = roomOf(t, 2);
  writeFileSync(join(dir, 'left'), '');
  new SpoolRoom({ dir, bytes: EXTENT_BYTES, onFault: () => undefined });
  t.same(readdirSync(dir), []);
  t.end();
});
