import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { NO_BINARIES, startOwnPostgres } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import type { Server } from '../../tools/cli/support.js';
import { files } from './store.js';
import { asked, logged, served, tokenFor } from './support.js';

/** Names of the database differ from those of the model, so that one that gets out is seen. */
const TABLES = `
  create schema vault;
  create table vault.kunden_t (kd_id int primary key, kd_name text, kd_alter int, kd_geheim text);
  create table vault.orte_t (ort_id int primary key, ort_name text);
  create table vault.wege_t (von int, nach int, primary key (von, nach));
  insert into vault.kunden_t values (1, 'ann', 41, 'x'), (2, 'bob', 42, 'y');
  insert into vault.orte_t values (1, 'north');
  insert into vault.wege_t values (1, 1);
  grant usage on schema vault to osl_reader;
  grant select on all tables in schema vault to osl_reader;`;

const MANIFEST = `version: 1
features: { joins: any }
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    tables:
      vault.kunden_t:
        columns:
          kd_id: { type: int4 }
          kd_name: { type: text }
          kd_alter: { type: int4 }
          kd_geheim: { type: text }
      vault.orte_t:
        columns: { ort_id: { type: int4 }, ort_name: { type: text } }
      vault.wege_t:
        columns: { von: { type: int4 }, nach: { type: int4 } }
entities:
  customer:
    source: db.vault.kunden_t
    primary_key: [id]
    columns: { id: { column: kd_id }, name: { column: kd_name }, age: { column: kd_alter }, flag: { column: kd_geheim } }
  place: { source: db.vault.orte_t, primary_key: [id], columns: { id: { column: ort_id }, name: { column: ort_name } } }
bridges:
  way:
    source: db.vault.wege_t
    left: { entity: customer, columns: [customer_id] }
    right: { entity: place, columns: [place_id] }
    primary_key: [customer_id, place_id]
    columns: { customer_id: { column: von }, place_id: { column: nach } }
metrics:
  oldest: { type: simple, entity: customer, expression: max(age) }
facets:
  notes:
    source: db.vault.orte_t
    entity: place
    entity_key: ort_id
    document_id: ort_id
    text: ort_name
    metadata: []
    scalar_indexed: [ort_id]
    versions: { raw: {} }
    retrieval: { max_top_k: 5 }
`;

const POLICY = `version: 1
tenant: demo
subjects:
  user:analyst: { ceiling: [analyst] }
roles:
  analyst:
    grants:
      - { on: customer, columns: [id, name, age], rows: flag is not null }
      - { on: place, columns: "*" }
      - { on: way, columns: "*" }
      - { on: notes, columns: "*" }
masks: {}
limits: { query: 100000, catalog: 100000 }
`;

/** Names that the caller never wrote. */
const HIDDEN = /vault|kunden|kd_|orte|ort_|wege|flag|STORE_URL|osl_reader/;

const AGES = 'select id, age from osl.entities.customer order by id';
const NAMES = 'select name from osl.entities.customer order by id';
const PLACES = 'select id, name from osl.entities.place';
const WALK = "select id from traverse(anchor => 'customer', target => 'place', keys => ('1'))";
const RETRIEVE = "select text from retrieve(facet => 'notes', query => 'north', top_k => 1)";

class World {
  readonly server: Server;
  readonly #token: string;
  readonly admin: pg.Pool;

  constructor(server: Server, token: string, admin: pg.Pool) {
    this.server = server;
    this.#token = token;
    this.admin = admin;
  }

  /** What a caller hears over REST; nothing of the database's names is in it. */
  async heard(t: Test, body: object): Promise<string> {
    const authorization = `Bearer ${this.#token}`;
    const { status, body: text } = await asked(this.server, '/osl/query', body, { authorization });
    t.notMatch(text, HIDDEN);
    if (status === 200) return '200';
    const { code, sqlstate, detail, hint } = JSON.parse(text) as Readonly<Record<string, string>>; // a problem
    t.ok(hint, `${code} has a hint`);
    return `${status} ${code} ${sqlstate}: ${detail}`;
  }

  osql(t: Test, osql: string): Promise<string> {
    return this.heard(t, { osql });
  }

  async wire(osql: string): Promise<string> {
    const port = Number(this.server.record()['pgPort']);
    const client = await connectPg({ port, user: 'user:analyst', password: this.#token });
    client.on('error', () => undefined);
    try {
      await client.query(osql);
      return 'answered';
    } catch (error) {
      const { code, detail, hint } = error as { code: string; detail: string; hint: string }; // an ErrorResponse
      return `${code} ${/E\d{4}/.exec(detail)?.[0]} ${hint === undefined ? 'no hint' : 'hint'}`;
    } finally {
      await client.end();
    }
  }

  async reloaded(): Promise<void> {
    const before = this.server.stderr.length;
    this.server.hangUp();
    while (!/reloaded: /.test(this.server.stderr.slice(before))) await sleep(20);
  }

  /** What the operator's log has said since `mark`. */
  since(mark: number): readonly Readonly<Record<string, unknown>>[] {
    return logged(this.server).slice(mark);
  }

  get mark(): number {
    return logged(this.server).length;
  }

  async ready(): Promise<Readonly<Record<string, unknown>>> {
    return JSON.parse((await asked(this.server, '/ready')).body) as Readonly<Record<string, unknown>>;
  }

  async outOfService(): Promise<number> {
    const { body } = await asked(this.server, '/metrics');
    return Number(/^osl_objects_out_of_service (\d+)$/m.exec(body)?.[1]);
  }
}

t.setTimeout(600_000);
const own = await startOwnPostgres();

t.test(
  'faults of a database, each with its own error',
  { skip: own === null ? NO_BINARIES : false },
  async (t) => {
    if (own === null) return;
    t.teardown(() => own.stop());
    const admin = new pg.Pool({ connectionString: own.url, max: 1 });
    admin.on('error', () => undefined);
    await admin.query(TABLES);
    const where = files(MANIFEST, POLICY);
    const env = { STORE_URL: own.readerUrl, OSL_DRIFT_SECONDS: '0' };
    const whole = t;
    let server = await served(whole, where, env);
    const token = await tokenFor(where.dataDir);
    let world = new World(server, token, admin);
    for (const osql of [AGES, NAMES, PLACES, WALK]) t.equal(await world.osql(t, osql), '200', osql);

    await t.test('what osl doctor would say is in the log of a start', async (t) => {
      const said = logged(server).filter(({ about }) => about === 'database db');
      for (const [msg, hint] of [
        [/^facet notes needs the extension pgvector, which is not installed$/, /CREATE EXTENSION vector/],
        [/^STORE_URL_SYSTEM is not set, and facet notes needs it$/, /has the SQL that creates the role/],
      ] as const)
        t.ok(
          said.some((line) => msg.test(String(line['msg'])) && hint.test(String(line['hint']))),
          msg.source,
        );
    });

    await t.test('no system credentials: E0522, and the log names the variable', async (t) => {
      const { mark } = world;
      t.match(
        await world.osql(t, RETRIEVE),
        /^503 E0522 55000: the content of facet `notes` cannot be served/,
      );
      t.match(world.since(mark), [{ connector: 'db', facet: 'notes', variable: 'STORE_URL_SYSTEM' }]);
    });

    await t.test('a grant that is missing: E0524', async (t) => {
      await admin.query('revoke select on vault.kunden_t from osl_reader');
      const { mark } = world;
      t.match(await world.osql(t, AGES), /^502 E0524 42501: .*`customer`/);
      t.match(await world.wire(AGES), '42501 E0524 hint');
      t.match(
        await world.heard(t, { metrics: ['oldest'] }),
        /^502 E0524 42501: .*`oldest`/,
        'what was asked for',
      );
      t.equal(await world.osql(t, PLACES), '200');
      t.match(world.since(mark)[0], {
        msg: 'upstream error',
        message: 'permission denied for table kunden_t',
        tables: ['vault.kunden_t'],
      });
      await admin.query(
        'revoke select on vault.wege_t from osl_reader; grant select on vault.kunden_t to osl_reader',
      );
      t.match(
        await world.osql(t, WALK),
        /^502 E0524 42501: .*the tables of the question$/,
        'a bridge is not named',
      );
      await admin.query('grant select on vault.wege_t to osl_reader');
      t.equal(await world.osql(t, WALK), '200');
    });

    await t.test('another type: E0526, where it is shown and where it is compared', async (t) => {
      await admin.query('alter table vault.kunden_t alter kd_alter type text');
      const { mark } = world;
      t.match(await world.osql(t, AGES), /^502 E0526 42804: .*`customer`/);
      t.match(await world.wire(AGES), '42804 E0526 hint');
      const compared = 'select id from osl.entities.customer where age > 41';
      t.match(await world.osql(t, compared), /^502 E0526 42804: .*`customer`/);
      t.equal(await world.osql(t, NAMES), '200');
      t.match(world.since(mark)[0], {
        message: 'the database has another type for a column than the manifest',
        about: 'osl.entities.customer.age',
        tables: ['vault.kunden_t'],
      });
      await admin.query('alter table vault.kunden_t alter kd_alter type int using kd_alter::int');
      t.equal(await world.osql(t, AGES), '200');
    });

    await t.test('a column that goes away under a running server: E0525', async (t) => {
      await admin.query('alter table vault.kunden_t drop kd_alter');
      const { mark } = world;
      t.match(await world.osql(t, AGES), /^502 E0525 42703: .*`customer`/);
      t.match(await world.wire(AGES), '42703 E0525 hint');
      t.equal(await world.osql(t, NAMES), '200');
      t.match(world.since(mark)[0], { message: /kd_alter does not exist/, tables: ['vault.kunden_t'] });
      t.equal(await world.outOfService(), 0, 'the next look is at a start or a reload');
    });

    await t.test(
      'SQL of ours that the database does not understand: E5000, and no operator is sent to mend it',
      async (t) => {
        // Functions of Postgres itself are made others, so that what the gateway says of them is wrong.
        const changes = [
          ['42883', 'upper(name)', 'proname = $$gone$$', 'upper(text)', 'proname = $$upper$$'],
          ['columns', 'ascii(name)', 'prorettype = 20', 'ascii(text)', 'prorettype = 23'],
          [
            '42P10',
            'k.key',
            'prorettype = 25, proallargtypes = null, proargmodes = null, proargnames = null',
            'jsonb_each(jsonb)',
            null,
          ],
        ] as const;
        for (const [what, value, set, signature, back] of changes) {
          const { rows } = await admin.query<{ oid: string }>(`select $1::regprocedure::oid::text as oid`, [
            `pg_catalog.${signature}`,
          ]);
          const change = (fields: string): Promise<unknown> =>
            admin.query(
              `set allow_system_table_mods = on; update pg_catalog.pg_proc set ${fields} where oid = ${rows[0]?.oid}; reset allow_system_table_mods`,
            );
          const question = `select ${value} from osl.entities.customer, jsonb_each('{"a": 1}') as k`;
          await change(set);
          const { mark } = world;
          t.match(await world.osql(t, question), /^500 E5000 XX000/, what);
          t.match(await world.wire(question), 'XX000 E5000');
          const said = world.since(mark);
          t.ok(
            said.some(({ msg, error }) => msg === 'internal error' && String(error).includes(what)),
            `the log says what: ${JSON.stringify(said)}`,
          );
          if (back === null) continue;
          await change(back);
          t.equal(await world.osql(t, question), '200');
        }
        t.equal(await world.outOfService(), 0);
      },
    );

    await t.test(
      'at start the object is out of service, the rest serves, a reload brings it back',
      async (t) => {
        await server.signal('SIGTERM');
        await admin.query('drop table vault.wege_t');
        server = await served(whole, where, env);
        world = new World(server, token, admin);
        t.match(
          logged(server).filter(({ msg }) => String(msg).startsWith('out of service')),
          [
            { object: 'customer', gone: ['vault.kunden_t.kd_alter'] },
            { object: 'way', gone: ['vault.wege_t'] },
          ],
        );
        t.ok(logged(server).some(({ msg }) => msg === 'the database has no column vault.kunden_t.kd_alter'));
        const { mark } = world;
        for (const osql of [AGES, NAMES])
          t.match(await world.osql(t, osql), /^502 E0525 42703: .*`customer`/);
        t.match(await world.wire(NAMES), '42703 E0525 hint');
        t.match(await world.osql(t, WALK), /^502 E0525 42703: .*the question/);
        t.equal(await world.osql(t, PLACES), '200');
        t.strictSame(world.since(mark), [], 'nothing was asked of the database');
        t.match(await world.ready(), { status: 'ready', objects_out_of_service: 2 });
        t.equal(await world.outOfService(), 2);

        await admin.query('alter table vault.kunden_t add kd_alter int');
        t.match(await world.osql(t, AGES), /^502 E0525/, 'until a reload');
        await world.reloaded();
        while ((await world.outOfService()) !== 1) await sleep(20);
        t.equal(await world.osql(t, AGES), '200');
        t.match(await world.osql(t, WALK), /^502 E0525/);
        await admin.query(
          'create table vault.wege_t (von int, nach int, primary key (von, nach)); grant select on vault.wege_t to osl_reader',
        );
        await world.reloaded();
        while ((await world.outOfService()) !== 0) await sleep(20);
        t.equal(await world.osql(t, WALK), '200');
        t.notOk((await world.ready())['objects_out_of_service']);
      },
    );

    await t.test('a database that is down: E0523 and a line, until it is up again', async (t) => {
      const { mark } = world;
      await own.down();
      t.match(await world.osql(t, AGES), /^502 E0523 08006: the database of this query does not respond/);
      t.match(await world.wire(PLACES), '08006 E0523 hint');
      await server.said('the database does not answer');
      const down = world.since(mark).filter(({ level }) => Number(level) >= 50);
      t.match(down, [{ msg: 'the database does not answer', connector: 'db', cause: /reached|in time/ }]);
      t.match(await world.ready(), { status: 'not_ready', checks: { engines: false } });
      await own.up();
      await server.said('the database answers again');
      t.equal(await world.osql(t, AGES), '200');
    });
    await admin.end();
  },
);
