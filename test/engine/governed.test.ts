import {
  type Access,
  type Catalog,
  compile,
  emit,
  type GovernedPlan,
  InternalError,
  ready,
} from 'osl-compiler';
import t from 'tap';
import { sql } from '../../src/base/sql.js';
import { dataRow, errorOf, NO_NATIVE, nativeFixture, pgliteFixture, text } from './fixture.js';

const CATALOG: Catalog = {
  version: 'c1',
  metrics: new Map(),
  facets: new Map(),
  edges: [],
  relations: new Map([
    [
      'order',
      {
        kind: 'entity',
        name: 'order',
        description: null,
        connector: 'db',
        schema: 'sales',
        table: 'orders',
        columns: (['id', 'note'] as const).map((name) => ({
          name,
          physical: name,
          type: name === 'id' ? ('int4' as const) : ('text' as const),
          description: null,
          nullable: true,
          sensitivity: null,
          keyDomain: null,
        })),
        primaryKey: ['id'],
        sealedKeys: ['id'],
      },
    ],
  ]),
};

const ACCESS: Access = {
  signature: 's1',
  policyVersion: 'p1',
  chainLength: 1,
  relations: new Map([
    [
      'order',
      {
        grants: [{ id: 'g1', columns: new Set(['id', 'note']), unmask: new Set<string>(), filter: null }],
        masks: new Map(),
        denied: new Set<string>(),
      },
    ],
  ]),
};

const OPTIONS = {
  subject: null,
  resultFormats: [],
  maxRows: 0,
  maxBytes: 0,
  timeoutMs: 10_000,
  signal: null,
};

for (const [name, open] of [
  ['pglite', pgliteFixture],
  ['native postgres', nativeFixture],
] as const) {
  t.test(`the governed door of ${name}`, async (t) => {
    await ready();
    const fixture = await open();
    if (fixture === null) return t.plan(0, NO_NATIVE);
    const { governed, system } = fixture.engine;
    await system.script(sql`create schema sales; create table sales.orders(id int4, note varchar(20));
      insert into sales.orders values (1, 'a'), (2, 'b')`);
    await system.grantRead('sales');
    const plan = compile('select id, note from osl.entities.order where id = $1', CATALOG, ACCESS, {
      parameterOids: [23],
    });
    t.equal(emit(plan).slots.length, 1);
    const rows: Buffer[] = [];
    const sink = { write: (bytes: Uint8Array): void => void rows.push(Buffer.from(bytes)) };

    t.same(await governed.execute(plan, [text('2')], OPTIONS, sink), {
      rows: 1,
      truncated: false,
    });
    t.same(Buffer.concat(rows), dataRow(['2', 'b']));

    rows.length = 0;
    const forged = { ...plan, outputs: plan.outputs } as unknown as GovernedPlan; // what a cast could smuggle in
    t.match(await errorOf(governed.execute(forged, [text('2')], OPTIONS, sink)), {
      message: 'an ungoverned plan reached the engine',
    });
    t.ok(
      (await errorOf(governed.execute(plan, [], OPTIONS, sink))) instanceof InternalError,
      'a value is missing',
    );
    t.equal(rows.length, 0);

    await system.script(sql`alter table sales.orders alter id type int8`);
    const stale = await errorOf(governed.execute(plan, [text('2')], OPTIONS, sink));
    t.match(stale, { entry: 'sourceChanged' }, 'stale type');
    t.equal(rows.length, 0);
    await fixture.close();
    return undefined;
  });
}
