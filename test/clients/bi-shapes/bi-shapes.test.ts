import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'libpg-query';
import t, { type Test } from 'tap';
import { type Asker, type Cell, type Frontends, startFrontends } from '../../support/frontends.js';
import { nativeOfRun, startTestService, type TestService } from '../../support/service.js';
import { SHOP_POLICY, SHOP_SCRIPT } from '../../support/shop.js';
import { type Copy, openCopy } from './copy.js';
import type { Shape } from './shape.js';
import { SHAPES } from './tools.js';

/**
 * Statements that BI tools send, answered through the wire, and beside it by an ungoverned copy of the tables: `clear` for a
 * caller who may see everything, `masked` for one who may not. Equal answers, or a stated refusal.
 */
t.setTimeout(600_000);

/** The shop's policy, in which its auditor may see everything. */
const POLICY = SHOP_POLICY.replace(
  'user:ada: { ceiling: [auditor, analyst] }',
  'user:ada: { ceiling: [all] }',
).replace(
  '  auditor:\n',
  `  all:
    grants:
      - { on: customer, columns: "*", unmask: [pii, secret, birth] }
      - { on: order, columns: "*" }
      - { on: product, columns: "*" }
      - { on: line, columns: "*" }
      - { on: sample, columns: "*" }
  auditor:\n`,
);

const COLUMNS: ReadonlyMap<string, string> = new Map([
  ['order', 'shop.orders'],
  ['product', 'shop.products'],
  ['line', 'shop.lines'],
  ['sample', 'shop.samples'],
]);

/** Columns that only the clear caller may read. */
const SECRETS = /@(eu|us)\.example|EU-[12]|US-3|1990-05-17|1985-01-02|1979-12-31/;

interface World {
  readonly test: TestService;
  readonly fronts: Frontends;
  readonly copy: Copy;
  readonly askers: ReadonlyMap<'clear' | 'masked', readonly [simple: Asker, extended: Asker]>;
  close(): Promise<void>;
}

async function startWorld(): Promise<World> {
  const native = await nativeOfRun();
  const test = await startTestService({ policy: POLICY, ...(native === null ? {} : { postgres: native }) });
  const fronts = await startFrontends(test.open);
  const askersOf = async (subject: string, role: string): Promise<[Asker, Asker]> => {
    const caller = { subject, aclRoles: [role] };
    return [await fronts.asker('simple wire', caller), await fronts.asker('extended wire', caller)];
  };
  const askers = new Map([
    ['clear', await askersOf('user:ada', 'all')],
    ['masked', await askersOf('user:ann', 'analyst')],
  ] as const);
  const copy = await openCopy(native);
  if (native === null) await copy.run(SHOP_SCRIPT);
  await copy.run(await copiesSql(askers.get('masked')?.[0]));
  return {
    test,
    fronts,
    copy,
    askers,
    async close() {
      for (const pair of askers.values()) for (const a of pair) a.end();
      await copy.close();
      await fronts.stop();
      await test.close();
      await native?.stop();
    },
  };
}

/** `clear.*` and `masked.*`: one view a relation, and the masked caller's own view of the customers. */
async function copiesSql(masked: Asker | undefined): Promise<string> {
  const reply = await masked?.ask('select id, name, email, tax_no, born, region from customer');
  if (reply?.outcome.kind !== 'rows') throw new Error('the masked caller must be able to read customers');
  const literal = (cell: Cell): string => (cell === null ? 'null' : `'${cell}'`);
  const rows = reply.outcome.rows.map((r) => `(${r.map(literal).join(', ')})`).join(', ');
  const views = (schema: string): string =>
    [...COLUMNS]
      .map(([name, table]) => `create view ${schema}."${name}" as select * from ${table};`)
      .join('\n');
  return `create schema clear; create schema masked; ${views('clear')} ${views('masked')}
    create view clear.customer as select * from shop.customers;
    create table masked.customer (like shop.customers); insert into masked.customer values ${rows};`;
}

/** The statement as the copy understands it: its schema is the caller's, and it is one database. */
function onCopy(sql: string, schema: string): string {
  return sql.replace(/"osl"\."entities"|osl\.entities|"entities"|\bentities(?=\.)/g, schema);
}

function isOrdered(sql: string): boolean {
  const [first] = parseSync(sql).stmts ?? [];
  const node = first?.stmt;
  return node !== undefined && 'SelectStmt' in node && (node.SelectStmt.sortClause?.length ?? 0) > 0;
}

function comparable(rows: readonly (readonly Cell[])[], ordered: boolean): readonly string[] {
  const texts = rows.map((r) => JSON.stringify(r));
  return ordered ? texts : texts.sort();
}

async function answered(t: Test, world: World, shape: Shape): Promise<boolean> {
  let all = true;
  for (const [rights, askers] of world.askers) {
    await world.copy.run(`set search_path = ${rights}`);
    const expected = await world.copy.ask(onCopy(shape.sql, rights));
    const ordered = isOrdered(shape.sql);
    for (const [i, asker] of askers.entries()) {
      const { outcome, raw } = await asker.ask(shape.sql);
      const where = `${rights}, ${i === 0 ? 'simple' : 'extended'}`;
      if (outcome.kind === 'refused') {
        t.fail(`${where}: ${outcome.code} ${outcome.message} (${outcome.hint ?? ''})`, { sql: shape.sql });
        all = false;
        continue;
      }
      const same = t.same(outcome.columns, expected.columns, `${where}: names`);
      const rows = t.same(
        comparable(outcome.rows, ordered),
        comparable(expected.rows, ordered),
        `${where}: rows`,
      );
      const masked = rights === 'clear' || t.notMatch(raw.toString('utf8'), SECRETS, `${where}: masked`);
      all &&= same && rows && masked;
    }
  }
  return all;
}

async function refused(t: Test, world: World, shape: Shape, sqlstate: string): Promise<boolean> {
  let all = true;
  for (const asker of world.askers.get('clear') ?? []) {
    const { outcome } = await asker.ask(shape.sql);
    const clean = outcome.kind === 'refused' && outcome.sqlstate === sqlstate;
    all &&= t.ok(clean, `is refused with ${sqlstate}`, { outcome });
    all &&= t.match((await asker.ask('select 1')).outcome, { kind: 'rows' }, 'and the session goes on');
  }
  return all;
}

t.test('what BI tools send', async (t) => {
  const world = await startWorld();
  t.teardown(() => world.close());
  const counts = new Map<string, readonly [supported: number, all: number]>();
  for (const { tool, shapes } of SHAPES) {
    let supported = 0;
    for (const shape of shapes) {
      await t.test(`${tool}: ${shape.what}`, async (t) => {
        const right =
          shape.refused === undefined
            ? await answered(t, world, shape)
            : await refused(t, world, shape, shape.refused.sqlstate);
        if (right && shape.refused === undefined) supported++;
      });
    }
    counts.set(tool, [supported, shapes.length]);
  }
  const page = readFileSync(join(process.cwd(), 'docs', 'osl-sql.md'), 'utf8');
  for (const [tool, [supported, all]] of counts) {
    t.comment(`${tool}: ${supported} of ${all} shapes answered`);
    t.ok(page.includes(`\n| ${tool} | ${supported} | ${all} |`), `docs/osl-sql.md says so of ${tool}`);
  }
  const total = [...counts.values()].reduce((sum, [s, a]) => [sum[0] + s, sum[1] + a], [0, 0]);
  t.comment(
    `all: ${total[0]} of ${total[1]} shapes answered; the rest are refused, each for a reason that its table states`,
  );
});
