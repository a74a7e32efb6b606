import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type pg from 'pg';
import tap, { type Test, test } from 'tap';
import { type NativePostgres, startOwnPostgres } from '../../support/native-postgres.js';
import { referenceClient } from '../../surfaces/catalog/support/reference.js';
import { openBase, openWorld } from '../../surfaces/catalog/support/world.js';
import { SHAPES } from '../bi-shapes/tools.js';
import { type Entry, readCorpus, type ToolCorpus } from './corpus.js';
import { EXCEPTIONS, type Exception } from './exceptions.js';
import { refusedOnPage, reportOf, withMatrix } from './matrix.js';
import { type Asked, type Measured, measured, type Pair } from './measure.js';
import { openMeasuredWorld } from './measured-world.js';
import { type CatalogStatement, oidsOf } from './statement.js';
import { TOOLS } from './tools.js';

tap.setTimeout(600_000);

const CAPTURED = join('test', 'clients', 'bi', 'captured');
const PAGE = join('docs', 'bi.md');

/** Names of the files of clients that the corpus knows too. */
const CALLED: ReadonlyMap<string, string> = new Map([
  ['postgres', 'postgres.js'],
  ['psqlodbc', 'psqlODBC'],
  ['sqlalchemy', 'SQLAlchemy'],
]);

/** Questions to the catalog alone: heard from real clients, and the scripts of tools that cannot run here. */
const CATALOG: readonly ToolCorpus[] = [
  ...readdirSync(CAPTURED)
    .sort()
    .map((file) =>
      catalogOf(CALLED.get(basename(file, '.json')) ?? basename(file, '.json'), 'captured', read(file)),
    ),
  ...Object.entries(TOOLS).map(([tool, statements]) => catalogOf(tool, 'written', statements)),
];

/** Questions to a shop with its rows: the corpus, and the data queries whose shapes `bi-shapes` tries one by one. */
const SHOP: readonly ToolCorpus[] = [
  ...readCorpus(),
  ...SHAPES.map(({ tool, shapes }) => ({
    tool,
    source: 'written' as const,
    protocol: 'simple' as const,
    entries: shapes.map(
      ({ what, sql, refused }): Entry => ({
        kind: /^\s*(select|with|--)/i.test(sql) ? 'data' : 'session',
        what,
        statements: [sql],
        ...(refused === undefined ? {} : { refused: refused.because }),
      }),
    ),
  })),
];

function read(file: string): readonly CatalogStatement[] {
  return JSON.parse(readFileSync(join(CAPTURED, file), 'utf8')) as CatalogStatement[]; // as capture.ts wrote it
}

function catalogOf(
  tool: string,
  source: 'captured' | 'written',
  statements: readonly CatalogStatement[],
): ToolCorpus {
  const entries = statements.map(
    ({ sql, values }, i): Entry => ({
      kind: /^\s*show/i.test(sql) ? 'session' : 'introspection',
      what: `${i + 1}, ${sql.replace(/\s+/g, ' ').slice(0, 70)}`,
      statements: [sql],
      ...(values === undefined ? {} : { values }),
    }),
  );
  return { tool, source, protocol: 'extended', entries };
}

async function askedOf(client: pg.Client): Promise<Asked> {
  const { rows } = await client.query<{ name: string }>('select current_database() as name');
  return { client, oids: await oidsOf(client), database: rows[0]?.name ?? '' };
}

/** Both ways in which a client can ask, and the worse of the two. */
async function inBothWays(
  pair: Pair,
  { tool, source }: ToolCorpus,
  entry: Entry,
  used: Set<Exception>,
): Promise<Measured> {
  const simple = await measured(pair, tool, source, entry, 'simple', used);
  const extended = await measured(pair, tool, source, entry, 'extended', used);
  return simple.grade === 'equal' ? extended : simple;
}

async function ofCatalog(
  t: Test,
  native: NativePostgres,
  used: Set<Exception>,
): Promise<readonly Measured[]> {
  const base = await openBase();
  t.teardown(() => base.close());
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const real = await referenceClient(native.url, base.service);
  t.teardown(() => real.end());
  const pair: Pair = { ours: await askedOf(await world.connect('clerk')), theirs: await askedOf(real) };
  const all: Measured[] = [];
  for (const corpus of CATALOG)
    for (const entry of corpus.entries) all.push(await inBothWays(pair, corpus, entry, used));
  return all;
}

async function ofShop(t: Test, native: NativePostgres, used: Set<Exception>): Promise<readonly Measured[]> {
  const world = await openMeasuredWorld(native);
  t.teardown(() => world.close());
  const pair: Pair = { ours: await askedOf(world.gateway), theirs: await askedOf(world.postgres) };
  const all: Measured[] = [];
  for (const { tool, source, protocol, entries } of SHOP)
    for (const entry of entries) all.push(await measured(pair, tool, source, entry, protocol, used));
  return all;
}

test('what tools and analysts send, beside a real Postgres that has what the caller may see', async (t) => {
  // One of its own: what a server lists of databases and sessions is compared.
  const native = await startOwnPostgres();
  if (native === null) {
    t.plan(0, 'there is no native Postgres on this machine');
    return;
  }
  t.teardown(() => native.stop());
  const used = new Set<Exception>();
  const all = (await Promise.all([ofCatalog(t, native, used), ofShop(t, native, used)])).flat();

  const page = readFileSync(PAGE, 'utf8');
  for (const m of all) {
    const where = `${m.tool}, ${m.kind}: ${m.what}`;
    if (m.fault !== null) t.fail(`${where} is not a statement of Postgres`, { fault: m.fault });
    if (m.grade === 'wrong') t.fail(where, { said: m.said });
    if (m.grade === 'refused') t.comment(`refused: ${where}: ${m.said}`);
    if (m.grade === 'equal' && m.reason !== null) t.comment(`answered, and said to be refused: ${where}`);
  }
  for (const m of all.filter((m) => m.source === 'checks' && m.reason === null))
    if (m.grade === 'refused') t.fail(`refused: ${m.tool}: ${m.what}`, { said: m.said });
  const sent = all.filter((m) => m.source !== 'checks');
  const refused = sent.filter((m) => m.grade === 'refused').length;
  t.ok(sent.length >= 600, `${sent.length} statements`);
  t.ok(
    sent.filter((m) => m.source === 'analysts').length >= 200,
    'a third of the 600 is what analysts write',
  );
  t.ok(refused <= sent.length * 0.03, `${refused} refused, which is no more than 3 %`);
  for (const e of EXCEPTIONS) t.ok(used.has(e), `an exception that is needed: ${e.why}`);
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, withMatrix(page, reportOf(sent)));
  else t.ok(refused <= refusedOnPage(page), `${refused} refused, and not more than docs/bi.md says`);
});
