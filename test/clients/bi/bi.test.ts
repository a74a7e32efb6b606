import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type pg from 'pg';
import tap, { test } from 'tap';
import { startOwnPostgres } from '../../support/native-postgres.js';
import { referenceClient } from '../../surfaces/catalog/support/reference.js';
import { openBase, openWorld } from '../../surfaces/catalog/support/world.js';
import { EXCEPTIONS, type Exception, under } from './exceptions.js';
import { difference, type Grade, grade, inline, type Outcome, outcomeOf } from './grade.js';
import { matrixOf, type Tally, withMatrix } from './matrix.js';
import { type CatalogStatement, oidsOf, withOids } from './statement.js';
import { TOOLS } from './tools.js';

tap.setTimeout(180_000);

const CAPTURED = join('test', 'clients', 'bi', 'captured');
const PAGE = join('docs', 'bi.md');

/** What real clients were heard to send, and the scripts of the tools that cannot run here. */
const SOURCES: readonly (readonly [name: string, how: 'captured' | 'script', readonly CatalogStatement[]])[] =
  [
    ...readdirSync(CAPTURED)
      .sort()
      .map((file) => [basename(file, '.json'), 'captured', read(file)] as const),
    ...Object.entries(TOOLS).map(([name, statements]) => [name, 'script', statements] as const),
  ];

function read(file: string): readonly CatalogStatement[] {
  return JSON.parse(readFileSync(join(CAPTURED, file), 'utf8')) as CatalogStatement[]; // as capture.ts wrote it
}

interface Server {
  readonly client: pg.Client;
  readonly oids: ReadonlyMap<string, string>;
  readonly database: string;
}

async function serverOf(client: pg.Client): Promise<Server> {
  const { rows } = await client.query<{ name: string }>('select current_database() as name');
  return { client, oids: await oidsOf(client), database: rows[0]?.name ?? '' };
}

function ask(server: Server, { sql, values = [] }: CatalogStatement, extended: boolean): Promise<Outcome> {
  const here = (text: string): string =>
    withOids(text, server.oids).replaceAll("'osl'", `'${server.database}'`);
  const bound = values.map((v) => (v === null ? null : v === 'osl' ? server.database : here(v)));
  const text = here(sql);
  return extended
    ? outcomeOf(server.client, text, bound)
    : outcomeOf(server.client, inline(text, bound), null);
}

test('catalog statements of clients and BI tools, beside a real Postgres', async (t) => {
  // One of its own: what a server lists of databases and sessions is compared.
  const native = await startOwnPostgres();
  if (native === null) {
    t.plan(0, 'there is no native Postgres on this machine');
    return;
  }
  t.teardown(() => native.stop());
  const base = await openBase();
  t.teardown(() => base.close());
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const ours = await serverOf(await world.connect('clerk'));
  const real = await referenceClient(native.url, base.service);
  t.teardown(() => real.end());
  const theirs = await serverOf(real);
  const tallies: Tally[] = [];
  const used = new Set<Exception>();
  for (const [name, how, statements] of SOURCES) {
    const counts: Record<Grade | 'excepted', number> = { equal: 0, refused: 0, wrong: 0, excepted: 0 };
    for (const statement of statements) {
      for (const extended of [false, true]) {
        const [a, b] = [await ask(ours, statement, extended), await ask(theirs, statement, extended)];
        const graded = grade(statement.sql, a, b);
        const exception = EXCEPTIONS.find(
          (e) =>
            (graded === 'wrong' || (e.always === true && graded === 'equal')) &&
            e.pattern.test(statement.sql) &&
            grade(statement.sql, under(e, a), under(e, b)) === 'equal',
        );
        if (exception !== undefined) used.add(exception);
        counts[exception !== undefined ? 'excepted' : graded]++;
        const where = `${name}, ${extended ? 'extended' : 'simple'}: ${statement.sql}`;
        if (graded === 'wrong' && exception === undefined)
          t.fail(where, { ...difference(a, b), values: statement.values });
        if (graded === 'refused') t.comment(`refused: ${where} ${JSON.stringify(a)}`);
      }
    }
    const asked = statements.length * 2;
    t.ok(statements.length > 0 && counts.equal > 0, `${name} was compared`);
    t.ok(counts.refused < asked * 0.05, `${name}: ${counts.refused} of ${asked} refused`);
    tallies.push({ name, how, statements: statements.length, ...counts });
  }
  for (const e of EXCEPTIONS) t.ok(used.has(e), `an exception that is needed: ${e.why}`);
  const page = readFileSync(PAGE, 'utf8');
  const current = withMatrix(page, matrixOf(tallies));
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, current);
  else t.equal(page, current, 'the matrix in docs/bi.md is of this run');
});
