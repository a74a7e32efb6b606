import t, { test } from 'tap';
import { parse } from 'yaml';
import type { Format, Imported } from '../../src/interchange/index.js';
import { manifestText } from '../../src/interchange/index.js';
import { ManifestProblems, parseManifest, pointer } from '../../src/manifest/index.js';
import { RICH_CUBE, RICH_DBT, RICH_OSSIE } from './rich.js';
import { SHOP_CUBE, SHOP_DBT, SHOP_OSSIE } from './shop.js';
import { imported } from './support.js';

t.setTimeout(300_000);

const SOURCES: Readonly<Record<Format, readonly string[]>> = {
  dbt: [RICH_DBT, SHOP_DBT],
  cube: [RICH_CUBE, SHOP_CUBE],
  ossie: [RICH_OSSIE, SHOP_OSSIE],
};

/** What only says again what stands elsewhere, and is documented as left alone. */
const RESTATED = /^\/(version|dialects|vendors)(\/|$)/;

type Steps = readonly (string | number)[];

/** The plain values of a document, each with the way to it. */
function leaves(value: unknown, path: Steps = []): readonly (readonly [Steps, unknown])[] {
  if (typeof value !== 'object' || value === null) return [[path, value]];
  return Object.entries(value).flatMap(([key, member]) =>
    leaves(member, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}

function changedAt(value: unknown, path: Steps): unknown {
  const [step, ...rest] = path;
  if (step === undefined) {
    if (typeof value === 'boolean') return !value;
    return typeof value === 'number' ? value + 1 : `${String(value)}x`;
  }
  if (Array.isArray(value)) return value.map((v, i) => (i === step ? changedAt(v, rest) : v));
  return Object.fromEntries(
    Object.entries(value as object).map(([k, v]) => [k, k === step ? changedAt(v, rest) : v]),
  );
}

function meaning({ document, policy, losses }: Imported): string {
  return JSON.stringify([document, policy, losses.map((l) => [l.path, l.kind, l.reason])]);
}

function meaningOf(format: Format, source: unknown): string {
  try {
    return meaning(imported(format, JSON.stringify(source), { schema: 'shop' }));
  } catch (error) {
    if (error instanceof ManifestProblems) return error.message;
    throw error;
  }
}

for (const format of ['dbt', 'cube', 'ossie'] as const) {
  test(`${format}: every value of a source counts for something, or is reported`, async (t) => {
    for (const text of SOURCES[format]) {
      const source: unknown = parse(text);
      const before = imported(format, JSON.stringify(source), { schema: 'shop' });
      const said = before.losses.map((l) => ({ path: l.path, lost: l.kind === 'lost' }));
      const silent: string[] = [];
      const all = leaves(source);
      for (const [path] of all) {
        const at = pointer(path);
        const told = said.some(
          (l) => l.path === at || (l.lost && (at.startsWith(`${l.path}/`) || l.path === '')),
        );
        if (told || RESTATED.test(at)) continue;
        if (meaningOf(format, changedAt(source, path)) === meaning(before)) silent.push(at);
      }
      t.same(silent, [], `${all.length} values`);
    }
  });

  test(`${format}: what is imported loads, and is the same each time`, async (t) => {
    for (const text of SOURCES[format]) {
      const first = imported(format, text);
      t.equal(meaning(imported(format, text)), meaning(first));
      const again = parseManifest(manifestText(first.document), 'manifest.yaml');
      t.equal(again.version, first.manifest.version);
      t.same(first.policy.subjects, {}, 'and nobody is granted anything');
    }
  });
}
