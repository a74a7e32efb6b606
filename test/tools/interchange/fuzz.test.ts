import t, { test } from 'tap';
import { parse } from 'yaml';
import type { ModelFormat } from '../../../interchange/index.js';
import { manifestText } from '../../../interchange/index.js';
import { ManifestProblems, parseManifest } from '../../../src/model/manifest/index.js';
import { fc } from '../../support/fast-check.js';
import { exportedShop } from './exported.js';
import { RICH_CUBE, RICH_DBT, RICH_OSSIE } from './rich.js';
import { SHOP_CUBE, SHOP_DBT, SHOP_OSSIE } from './shop.js';
import { imported } from './support.js';

t.setTimeout(7_200_000);

/** Changes to each file; OSL_IMPORT_RUNS says another number, OSL_TEST_SEED another seed. */
const RUNS = Number(process.env['OSL_IMPORT_RUNS'] ?? 60);
const SEED = Number(process.env['OSL_TEST_SEED'] ?? 20_261_121);

const SOURCES: Readonly<Record<ModelFormat, readonly string[]>> = {
  dbt: [RICH_DBT, SHOP_DBT],
  cube: [RICH_CUBE, SHOP_CUBE],
  ossie: [RICH_OSSIE, SHOP_OSSIE, exportedShop()],
};

/** What may stand in any place of a file that nobody has looked at. */
const ODD: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1e21, '', ' ', '*', [], {}, [[]], [null], { name: 'x' }),
  fc.constantFrom(
    'pg_catalog.pg_class',
    'a.b.c.d',
    '__proto__',
    'constructor',
    'evidence',
    'x'.repeat(300),
    '"',
    "'",
    '{CUBE}',
    '{{ x }}',
    '{x.y}',
  ),
  fc.constantFrom(
    'sum(x)',
    'x',
    'x + 1',
    'count(*)',
    'select 1',
    'ünder score',
    '1st',
    'in\nside',
    '\u0001',
    '\u202e',
    'system',
    'time',
    'number',
  ),
  fc.string({ maxLength: 12 }),
);

type Steps = readonly (string | number)[];

function places(value: unknown, path: Steps = []): readonly Steps[] {
  if (typeof value !== 'object' || value === null) return [path];
  const below = Object.entries(value).flatMap(([k, v]) =>
    places(v, [...path, Array.isArray(value) ? Number(k) : k]),
  );
  return [path, ...below];
}

function replaced(value: unknown, path: Steps, by: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return by;
  if (Array.isArray(value)) return value.map((v, i) => (i === step ? replaced(v, rest, by) : v));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([k, v]) => [k, k === step ? replaced(v, rest, by) : v]),
  );
}

for (const format of ['dbt', 'cube', 'ossie'] as const) {
  test(`${format}: whatever stands in a file, it is refused with its place or gives a manifest that loads`, async () => {
    for (const text of SOURCES[format]) {
      const source: unknown = parse(text);
      const all = places(source);
      const change = fc.tuple(fc.nat({ max: all.length - 1 }), ODD);
      fc.assert(
        fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
          const odd = changes.reduce((value, [at, by]) => replaced(value, all[at] ?? [], by), source);
          try {
            const { document, manifest, policy } = imported(format, JSON.stringify(odd) ?? 'null');
            const again = parseManifest(manifestText(document), 'manifest.yaml');
            return again.version === manifest.version && Object.keys(policy.subjects).length === 0;
          } catch (error) {
            if (error instanceof ManifestProblems)
              return error.diagnostics.every((d) => d.range.start.line >= 1);
            throw error;
          }
        }),
        { numRuns: RUNS, seed: SEED },
      );
    }
  });
}
