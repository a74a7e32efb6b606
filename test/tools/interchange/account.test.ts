import t, { test } from 'tap';
import { parse } from 'yaml';
import { ManifestProblems, parseManifest, pointer } from '../../../src/model/manifest/index.js';
import type { Format, Imported } from '../../../src/tools/interchange/index.js';
import { manifestText } from '../../../src/tools/interchange/index.js';
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

test('dbt: what a metric is made of comes as names or as mappings, in each place that dbt has for it', (t) => {
  const { document, losses } = imported('dbt', RICH_DBT);
  t.match(document.metrics, {
    both: { type: 'derived', expression: 'riders + fares' },
    mean: { type: 'derived', expression: 'riders * 2' },
    twice: { type: 'derived', expression: 'riders' },
    ever: { type: 'cumulative', metric: 'ever_base' },
    ever_base: { filter: /'first'/ },
  });
  const told = new Map(losses.map((l) => [l.path, l.reason]));
  const place = (name: string, key: string): string => {
    const at = (parse(RICH_DBT).metrics as { name: string }[]).findIndex((m) => m.name === name);
    return `/metrics/${at}${key}`;
  };
  t.match(told.get(place('mean', '/numerator')), /has no counterpart/, 'what a derived metric has not');
  t.match(told.get(place('twice', '/input_metrics')), /has no counterpart/, 'a second list');
  t.match(told.get(place('growth', '')), /an input of another time \(`offset_window`\) has no counterpart/);
  t.end();
});

test('each dimension that is computed is named in the report, with the reason', (t) => {
  const of = (format: Format, text: string): readonly string[] =>
    imported(format, text)
      .losses.filter((l) => l.kind === 'lost' && l.reason.includes('computed, and the columns'))
      .map((l) => l.reason);
  const computed = (names: string): RegExp[] =>
    names.split(' ').map((name) => new RegExp(`\`${name}\`.* is computed, and the columns`));
  t.match(of('dbt', RICH_DBT), computed('is_far'));
  t.match(of('cube', RICH_CUBE), computed('far place band'));
  t.end();
});
