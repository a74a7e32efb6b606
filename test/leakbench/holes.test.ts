import { readFileSync } from 'node:fs';
import t, { test } from 'tap';
import { ATTACKS, type Attack } from '../../leakbench/attacks/index.js';
import type { Worlds } from '../../leakbench/endpoint.js';
import { osl } from '../../leakbench/endpoints/osl.js';
import { judge } from '../../leakbench/judge.js';
import { coldFirst } from '../../leakbench/run.js';
import { createWorlds, dropWorlds } from '../../leakbench/world.js';
import { startNativePostgres } from '../support/native-postgres.js';
import { GatewayCopy } from './gateway-copy.js';
import { HOLES, type Hole } from './holes.js';

/**
 * Holes planted in a copy of the gateway are found by an attack. `OSL_HOLES` says how many, from the start of the
 * table; `OSL_HOLE` names some, separated by commas.
 */

t.setTimeout(3_600_000);
const count = Number(process.env['OSL_HOLES'] ?? 1);
const named = process.env['OSL_HOLE'];
const chosen =
  named === undefined ? HOLES.slice(0, count) : HOLES.filter((hole) => named.split(',').includes(hole.name));
const native = await startNativePostgres();
const skip = native === null && 'no native Postgres is installed here';
t.teardown(() => native?.stop());
const PREFIX = `leakbench_holes_${process.pid}`;

test('the holes have names of their own, and there are enough', (t) => {
  t.equal(new Set(HOLES.map((hole) => hole.name)).size, HOLES.length);
  t.ok(HOLES.length >= 30, `${HOLES.length} holes`);
  t.end();
});

test('the text of each patch stands once in its file, also of those that the nightly run plants', (t) => {
  for (const { name, patches } of HOLES)
    for (const { file, from } of patches)
      t.equal(readFileSync(file, 'utf8').split(from).length - 1, 1, `${name}: ${file}: ${from}`);
  t.end();
});

test('each planted hole is found', { skip }, async (t) => {
  const url = native?.url ?? '';
  const copy = new GatewayCopy(process.cwd());
  process.env['LEAKBENCH_OSL'] = copy.command;
  try {
    const worlds = await createWorlds(url, PREFIX, 'everything');
    for (const hole of chosen) {
      const found = await copy.patched(hole.patches, () => firstLeak(hole, worlds));
      t.ok(found !== null, `${hole.name}: ${found?.id ?? 'no attack finds it'}`);
      t.comment(`${hole.name}: ${found?.id ?? 'not found'}`);
    }
  } finally {
    copy.remove();
    await dropWorlds(url, PREFIX);
  }
});

const isShort = count < 2 && 'part of the nightly run';

test('an unchanged copy leaks nothing, and with a cache neither', { skip: skip || isShort }, async (t) => {
  const url = native?.url ?? '';
  const copy = new GatewayCopy(process.cwd());
  process.env['LEAKBENCH_OSL'] = copy.command;
  try {
    const worlds = await createWorlds(url, PREFIX, 'everything');
    const unchanged: Hole = { name: 'none', on: 'wire', classes: ['cursors', 'errors'], patches: [] };
    for (const { manifest = null } of [unchanged, ...HOLES.filter((hole) => hole.manifest !== undefined)])
      t.equal(await firstLeak({ ...unchanged, ...(manifest !== null && { manifest }) }, worlds), null);
  } finally {
    copy.remove();
    await dropWorlds(url, PREFIX);
  }
});

/** The first attack of the hole's classes that leaks at the gateway as it is patched now. */
async function firstLeak({ on, classes, manifest }: Hole, worlds: Worlds): Promise<Attack | null> {
  const kind = osl('planted', 'a copy with a hole', on, manifest === undefined ? {} : { manifest });
  const endpoint = await kind.start(worlds);
  try {
    for (const of of classes)
      for (const attack of coldFirst(ATTACKS.filter((a) => a.class === of)))
        if ((await judge(endpoint, attack)).outcome === 'leak') return attack;
    return null;
  } finally {
    await endpoint.close();
  }
}
