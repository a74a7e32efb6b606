import pg from 'pg';
import t from 'tap';
import { type NativePostgres, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { startTestService } from '../../support/service.js';
import { servePg } from '../../surfaces/pg/support.js';
import { type Dice, diceFrom } from './dice.js';

/**
 * Many grants on one table: what the gateway answers is what the filters show that are written out one beside the other,
 * cell by cell, and a hidden row fails nothing.
 */

const WORLDS = Number(process.env['OSL_FOLDED_WORLDS'] ?? 60);
const SEED = Number(process.env['OSL_NIGHTLY_SEED'] ?? 20_261_124);
t.setTimeout(3_600_000);

/** A column that grants compare with values, in its order. */
interface Compared {
  readonly name: string;
  readonly type: string;
  /** As SQL writes them. */
  readonly values: readonly string[];
  /** True if grants limit it, too. */
  readonly ranged: boolean;
}

const quoted = (texts: readonly string[]): readonly string[] => texts.map((text) => `'${text}'`);

const COLUMNS: readonly Compared[] = [
  { name: 'small', type: 'int2', values: ['-3', '0', '1', '2', '7'], ranged: true },
  { name: 'n', type: 'int4', values: ['-2147483648', '-1', '0', '1', '2', '3', '2147483647'], ranged: true },
  { name: 'big', type: 'int8', values: ['-5', '4', '5', '6', '9007199254740993'], ranged: true },
  { name: 'exact', type: 'numeric', values: ['-0.5', '0', '0.10', '1.5', '2', '10'], ranged: true },
  { name: 'float', type: 'float8', values: ['-1.5', '0', '2.5', "'NaN'::float8"], ranged: true },
  {
    name: 'day',
    type: 'date',
    values: quoted(['2025-12-31', '2026-01-01', '2026-02-28', '2026-03-01']),
    ranged: true,
  },
  {
    name: 'local',
    type: 'timestamp',
    values: quoted(['2026-01-01', '2026-01-01 00:00:00.5', '2026-01-01 10:00', '2026-01-02 09:00:00']),
    ranged: true,
  },
  {
    name: 'moment',
    type: 'timestamptz',
    values: quoted([
      '2026-01-01 00:00:00+00',
      '2026-01-01 01:30:00+02',
      '2026-01-01 10:00:00Z',
      '2026-01-02 00:00:00+00',
    ]),
    ranged: true,
  },
  { name: 'word', type: 'text', values: quoted(['a', 'B', 'b ', '', 'é', "it''s"]), ranged: true },
  { name: 'fixed', type: 'bpchar', values: quoted(['a', 'b', 'c ']), ranged: false },
  {
    name: 'token',
    type: 'uuid',
    values: quoted(['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']),
    ranged: false,
  },
  { name: 'flag', type: 'bool', values: ['true', 'false'], ranged: false },
  { name: 'mood', type: 'enum', values: quoted(['sad', 'ok', 'glad']), ranged: false },
];

/** Shown in the clear to whom a grant unmasks the label. */
const SECRET = 'secret';
const ROWS = 120;

interface Grant {
  readonly filter: string;
  readonly columns: readonly string[] | '*';
  readonly unmask: boolean;
  /** One that does not count, since its time is over. */
  readonly isOver: boolean;
}

function randomFilter(dice: Dice, columns: readonly Compared[]): string {
  const column = dice.of(columns);
  const value = (): string => dice.of(column.values);
  const form = dice.upTo(column.ranged ? 9 : 3);
  if (form <= 1) return `${column.name} = ${value()}`;
  if (form === 2) return `${column.name} in (${dice.times(1, 4, value).join(', ')})`;
  if (form === 3) return `${column.name} in (${value()}, null)`;
  const above = (): string => `${column.name} ${dice.of(['>', '>='])} ${value()}`;
  const below = (): string => `${column.name} ${dice.of(['<', '<='])} ${value()}`;
  if (form === 4) return above();
  if (form === 5) return below();
  if (form === 6) return `${column.name} between ${value()} and ${value()}`;
  if (form === 7) return `${column.name} = ${value()} and n > 0`;
  return `${above()} and ${below()}`;
}

/** Of few columns, so that their filters meet. */
function randomGrants(dice: Dice): readonly Grant[] {
  const compared = [dice.of(COLUMNS), dice.of(COLUMNS)];
  const names = COLUMNS.map((c) => c.name);
  const grants = dice.times(2, 9, () => ({
    filter: randomFilter(dice, compared),
    columns: dice.chance(0.7) ? ('*' as const) : ['id', 'n', ...dice.some(names, 0.5)],
    unmask: dice.chance(0.4),
    isOver: dice.chance(0.15),
  }));
  const [first, ...others] = grants;
  return first !== undefined && grants.every((g) => g.isOver)
    ? [{ ...first, isOver: false }, ...others]
    : grants;
}

/** Where ranges meet, or miss each other by one value. */
const EDGES: readonly (readonly string[])[] = [
  ['n < 1', 'n > 1'],
  ['n <= 1', 'n > 1'],
  ['n > 1', 'n < 1', 'n = 1'],
  ['n >= 0 and n < 2', 'n >= 0 and n <= 2'],
  ['n >= 0 and n <= 2', 'n > 0 and n < 2'],
  ['n > 0 and n < 2', 'n >= 0 and n < 1'],
  ['n > 2 and n < 1', 'n between 3 and 1', 'n >= 3'],
  ['exact >= 0.1 and exact < 1.5', 'exact > 1.5', 'exact = 2'],
  ["day < '2026-01-01'", "day > '2026-01-01' and day <= '2026-02-28'"],
  [
    "moment >= '2026-01-01 01:30:00+02' and moment < '2026-01-01 00:00:00Z'",
    "moment > '2026-01-01 00:00:00+00'",
  ],
  ["moment >= '9999-12-31 23:00:00-05'", "moment < '2026-01-01 00:00:00Z'"],
  [
    "moment > '9999-12-31 23:59:59.5-01'",
    "moment <= '2026-01-01 00:00:00Z'",
    "moment > '0001-01-01 00:00:00+05'",
  ],
];

const MANIFEST = `
version: 1
tenant: folded
connectors:
  db:
    kind: pglite
    tables:
      rows.things:
        columns:
          id: { type: int4 }
          ${SECRET}: { type: text, sensitivity: ${SECRET} }
${COLUMNS.map((c) => `          ${c.name}: ${c.type === 'enum' ? '{ type: text, stored: enum rows.mood }' : `{ type: ${c.type} }`}`).join('\n')}
entities:
  thing: { source: db.rows.things, columns: [id, ${SECRET}, ${COLUMNS.map((c) => c.name).join(', ')}], primary_key: [id], entity_key_columns: [id] }
`;

function policyOf(worlds: readonly (readonly Grant[])[]): string {
  const subjects = worlds.map((_, i) => `  user:w${i}: { ceiling: [r${i}] }`);
  const roles = worlds.map((grants, i) => {
    const lines = grants.map(({ filter, columns, unmask, isOver }) => {
      const which = columns === '*' ? '"*"' : `[${[...new Set(columns)].join(', ')}]`;
      const more = `${unmask ? `, unmask: [${SECRET}]` : ''}${isOver ? ', ends: 2020-01-01T00:00:00Z' : ''}`;
      return `      - { on: thing, columns: ${which}, rows: ${JSON.stringify(filter)}${more} }`;
    });
    return `  r${i}:\n    grants:\n${lines.join('\n')}`;
  });
  return `version: 1\ntenant: folded\nsubjects:\n${subjects.join('\n')}\nroles:\n${roles.join('\n')}\nmasks: { ${SECRET}: redact }\nlimits: { query: 1000000 }\n`;
}

function scriptOf(dice: Dice): string {
  const columns = COLUMNS.map((c) => `${c.name} ${c.type === 'enum' ? 'rows.mood' : c.type}`);
  const rows = Array.from({ length: ROWS }, (_, id) => {
    const values = COLUMNS.map((c) => (dice.chance(0.15) ? 'null' : dice.of(c.values)));
    return `(${id}, 'secret ${id}', ${values.join(', ')})`;
  });
  return `create schema rows; create type rows.mood as enum ('sad', 'ok', 'glad');
    create table rows.things (id int4 primary key, ${SECRET} text, ${columns.join(', ')});
    insert into rows.things values ${rows.join(', ')};
    analyze rows.things`;
}

const visible = (grants: readonly Grant[]): string =>
  grants.length === 0 ? 'false' : grants.map((g) => `(${g.filter})`).join(' or ');

/** What the grants show, filter beside filter. */
function written(grants: readonly Grant[]): string {
  const covering = (name: string): readonly Grant[] =>
    grants.filter((g) => g.columns === '*' || g.columns.includes(name));
  const shown = COLUMNS.filter((c) => covering(c.name).length > 0).map((c) => {
    const masked = ['text', 'bpchar', 'enum'].includes(c.type) ? "'[redacted]'" : 'null';
    return `case when ${visible(covering(c.name))} then ${c.name}::text else ${masked} end as ${c.name}`;
  });
  const clear = covering(SECRET).filter((g) => g.unmask);
  const secret =
    covering(SECRET).length === 0
      ? []
      : [`case when ${visible(clear)} then ${SECRET} else '[redacted]' end as ${SECRET}`];
  return `select id, ${[...shown, ...secret].join(', ')} from rows.things where ${visible(grants)} order by id`;
}

/** The same of the gateway. */
function asked(grants: readonly Grant[]): string {
  const seen = [...COLUMNS.map((c) => c.name), SECRET].filter((name) =>
    grants.some((g) => g.columns === '*' || g.columns.includes(name)),
  );
  return `select id, ${seen.map((name) => `${name}::text as ${name}`).join(', ')} from thing order by id`;
}

/** The key of a hidden row; null where every row is shown. */
const HIDDEN = (grants: readonly Grant[]): string =>
  `select min(id) as id from rows.things where (${visible(grants)}) is not true`;

const postgres = await startNativePostgres();
if (postgres === null) t.test('folded grants', { skip: NO_NATIVE }, async () => undefined);
else await foldedGrants(postgres);

async function foldedGrants(on: NativePostgres): Promise<void> {
  const dice = diceFrom(SEED);
  const edges = EDGES.map((filters) =>
    filters.map((filter): Grant => ({ filter, columns: '*', unmask: false, isOver: false })),
  );
  const worlds = [...edges, ...Array.from({ length: WORLDS }, () => randomGrants(dice))];
  const shop = await startTestService({
    postgres: on,
    manifest: MANIFEST,
    policy: policyOf(worlds),
    script: scriptOf(dice),
    schema: 'rows',
  });
  const gateway = await servePg(t, shop);
  const direct = new pg.Client({ connectionString: on.url });
  await direct.connect();
  await direct.query("set search_path = rows, pg_catalog; set timezone = 'UTC'");
  t.teardown(async () => {
    await direct.end();
    await on.stop();
  });

  t.test(`as written out: ${WORLDS} sets of grants`, async (t) => {
    let [rows, guards] = [0, 0];
    for (const [i, all] of worlds.entries()) {
      const grants = all.filter((g) => !g.isOver);
      const client = await gateway.connect(`user:w${i}`);
      const told = all.map((g) => `${g.isOver ? 'over: ' : ''}${g.filter}`).join(' | ');
      const expected = (await direct.query({ text: written(grants), rowMode: 'array' })).rows;
      t.strictSame((await client.query({ text: asked(grants), rowMode: 'array' })).rows, expected, told);
      rows += expected.length;
      const hidden: unknown = (await direct.query(HIDDEN(grants))).rows[0].id;
      if (hidden !== null) {
        guards++;
        const more = `100 / (id - ${String(hidden)}) < 1000`;
        const ids = (
          await direct.query(
            `with shown as materialized (select id from rows.things where ${visible(grants)})
             select id from shown where ${more} order by id`,
          )
        ).rows;
        t.strictSame((await client.query(`select id from thing where ${more} order by id`)).rows, ids, told);
      }
      await client.end();
    }
    t.ok(
      rows > WORLDS && guards > WORLDS / 4,
      `${rows} rows, ${guards} conditions that hidden rows would fail`,
    );
  });
}
