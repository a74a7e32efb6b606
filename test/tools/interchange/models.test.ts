import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t, { test } from 'tap';
import { parse } from 'yaml';
import {
  DEFAULT_OPTIONS,
  exportModel,
  type ImportResult,
  importModel,
  type ModelFormat,
  manifestText,
  ossieText,
  policyText,
} from '../../../interchange/index.js';
import { isObject } from '../../../src/base/is-object.js';
import { answerOf, comparable } from '../../language/metrics/answers.js';
import { fc } from '../../support/fast-check.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { silentValues } from './silence.js';
import { imported } from './support.js';

t.setTimeout(600_000);

/** Models as the current versions of other tools write them: five of each, each beside what is expected of it. */
const MODELS = resolve('test', 'tools', 'interchange', 'models');
const FORMATS: readonly ModelFormat[] = ['dbt', 'cube', 'ossie'];

interface ModelFixture {
  readonly format: ModelFormat;
  readonly name: string;
  readonly text: string;
  /** File with what is taken of it and what is not. */
  readonly expected: string;
}

const FIXTURES = FORMATS.flatMap((format): readonly ModelFixture[] =>
  readdirSync(join(MODELS, format))
    .filter((file) => !file.endsWith('.txt'))
    .map((file) => ({
      format,
      name: `${format}/${file}`,
      text: readFileSync(join(MODELS, format, file), 'utf8'),
      expected: join(MODELS, format, file.replace(/\.\w+$/, '.txt')),
    })),
);

/** Values that may be changed without another meaning: to count any constant is to count rows. */
const SAME_MEANING: ReadonlyMap<string, readonly string[]> = new Map([
  ['dbt/loans.yml', ['/models/0/metrics/1/expr']],
]);

function fixture(name: string): ModelFixture {
  const found = FIXTURES.find((f) => f.name === name);
  if (found === undefined) throw new TypeError(`there is no fixture ${name}`);
  return found;
}

/** Everything that was taken, a line each. */
function takenOf({ document, policy }: ImportResult): readonly string[] {
  const { entities, relationships = {}, metrics = {}, lexicon = {} } = document;
  return [
    ...Object.entries(entities).flatMap(([name, entity]) => {
      const { primary_key = [], time_dimension, columns, computed = {}, source } = entity;
      const table = isObject(source) ? `${source['connector']}.${source['table']}` : source;
      const list = Object.entries(columns).map(([column, stated]) => {
        const marks = `${primary_key.includes(column) ? '*' : ''}${time_dimension === column ? '@' : ''}`;
        const physical =
          isObject(stated) && typeof stated['column'] === 'string' ? `=${stated['column']}` : '';
        return `${column}${marks}${physical}`;
      });
      return [
        `entity ${name} on ${table}: ${list.join(' ')}`,
        ...Object.entries(computed).map(([own, { expression }]) => `computed ${name}.${own}: ${expression}`),
      ];
    }),
    ...Object.entries(relationships).map(([name, r]) => `link ${name}: ${r.from} -> ${r.to}, ${r.kind}`),
    ...Object.entries(metrics).map(([name, { description: _, ...body }]) => `metric ${name}: ${plain(body)}`),
    ...Object.entries(lexicon).map(([word, term]) => `word ${word}: ${plain(term)}`),
    ...Object.entries(policy.roles).flatMap(([role, { grants }]) =>
      grants.map((grant) => `role ${role}: ${plain(grant)}`),
    ),
    ...Object.entries(policy.masks).map(([label, mask]) => `mask ${label}: ${mask}`),
  ];
}

function plain(value: unknown): string {
  return JSON.stringify(value).replaceAll('"', '');
}

/** What was not taken, and all that is about access. */
function lostOf({ losses }: ImportResult): readonly string[] {
  return losses
    .filter((l) => l.kind === 'lost' || l.severity === 'high')
    .map((l) => `${l.kind}${l.severity === 'high' ? '!' : ''} ${l.path}: ${l.reason}`);
}

test('there are five models of each format, and each says whose shape it has', (t) => {
  for (const format of FORMATS) t.equal(FIXTURES.filter((f) => f.format === format).length, 5, format);
  for (const { name, text } of FIXTURES)
    t.match(text, /in the shape of (dbt-labs|cube-js|apache)\/[\w.-]+,\s/, name);
  t.end();
});

for (const { format, name, text, expected } of FIXTURES) {
  test(`${name}: what is taken and what is not is as expected`, (t) => {
    const model = imported(format, text);
    const said = `${[...takenOf(model), '', ...lostOf(model)].join('\n')}\n`;
    if (process.env['OSL_GOLDEN'] === 'rewrite') writeFileSync(expected, said);
    t.equal(said, readFileSync(expected, 'utf8'), 'OSL_GOLDEN=rewrite writes it anew');
    t.same(model.policy.subjects, {}, 'nobody is granted anything');
    t.end();
  });

  test(`${name}: whatever is lost and has a name is reported by it, and nothing is lost silently`, (t) => {
    const source: unknown = parse(text);
    for (const loss of imported(format, text).losses) {
      const named = valueAt(source, loss.path);
      if (loss.kind !== 'lost' || !isObject(named) || typeof named['name'] !== 'string') continue;
      t.ok(loss.reason.includes(`\`${named['name']}\``), `${loss.path}: ${loss.reason}`);
    }
    t.same(silentValues(format, source, {}, 'shapes').silent, SAME_MEANING.get(name) ?? []);
    t.end();
  });

  test(`${name}: the import survives an export and another import`, (t) => {
    const first = imported(format, text);
    const policy = first.policy;
    const { ossie } = exportModel({ file: 'manifest.yaml', text: manifestText(first.document) }, policy);
    const file = { file: 'model.yaml', text: ossieText(ossie) };
    const second = importModel('ossie', [file], { ...DEFAULT_OPTIONS, withPolicy: true });
    t.equal(second.manifest.version, first.manifest.version);
    t.same(second.losses, []);
    t.same(JSON.parse(JSON.stringify(second.policy)), JSON.parse(JSON.stringify(policy)));
    t.end();
  });
}

function valueAt(source: unknown, path: string): unknown {
  let value = source;
  for (const step of path.split('/').slice(1)) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Object.entries(value).find(([key]) => key === step)?.[1];
  }
  return value;
}

const MEMBERS = ['trial_no', 'country', 'state', 'crop', 'yield', 'sown_on', 'dry', 'trials', 'best'];

/** What each member is made of, if it is made of columns. */
const MADE_OF: Readonly<Record<string, readonly string[]>> = {
  best: ['yield'],
  dry: ['yield', 'crop'],
  trials: [],
};

/** A list of members, everything, or no list. */
const listed = fc.oneof(fc.constant(null), fc.constant('*'), fc.subarray(MEMBERS));
const levels = fc.record({ includes: listed, excludes: fc.oneof(fc.constant(null), fc.subarray(MEMBERS)) });
const policies = fc.record({
  member_level: fc.oneof(fc.constant(null), levels),
  member_masking: fc.oneof(fc.constant(null), levels),
  filtered: fc.boolean(),
});

interface Level {
  readonly includes: string | readonly string[] | null;
  readonly excludes: readonly string[] | null;
}

function isIn(level: Level | null, name: string, without: boolean): boolean {
  if (level === null) return without;
  if (level.excludes?.includes(name) === true) return false;
  return level.includes === null || level.includes === '*' || level.includes.includes(name);
}

/** The trials under one policy, with a dimension that is computed. */
function underPolicy(policy: Readonly<Record<string, unknown>>): string {
  const source = parse(fixture('cube/trials.yml').text) as {
    cubes: [{ dimensions: object[]; access_policy: unknown }];
  };
  const [cube] = source.cubes;
  cube.dimensions.push({ name: 'dry', sql: '{yield} < 5 and {crop} is not null', type: 'boolean' });
  cube.access_policy = [policy];
  return JSON.stringify(source);
}

test('no access policy of Cube becomes wider, whatever members it shows and masks', (t) => {
  let granted = 0;
  const property = fc.property(policies, ({ member_level, member_masking, filtered }) => {
    const stated = (level: Level | null): object | undefined =>
      level === null ? undefined : JSON.parse(JSON.stringify(level, (_, v) => v ?? undefined));
    const filters = [{ member: 'state', operator: 'equals', values: ['open'] }];
    const { policy } = imported(
      'cube',
      underPolicy({
        group: 'g',
        member_level: stated(member_level),
        member_masking: stated(member_masking),
        ...(filtered && { row_level: { filters } }),
      }),
    );
    for (const grant of policy.roles['g']?.grants ?? []) {
      granted++;
      const columns = grant.columns === '*' ? MEMBERS : grant.columns;
      const clear = columns.filter((name) => {
        const label = `trial_${name}`;
        return policy.masks[label] === undefined || grant.unmask?.includes(label) === true;
      });
      for (const name of columns) {
        const shown = isIn(member_level, name, true);
        const masked = !shown && isIn(member_masking, name, false);
        if (!(clear.includes(name) ? shown : shown || masked)) return false;
      }
      for (const [name, reads] of Object.entries(MADE_OF)) {
        if (reads.every((c) => clear.includes(c)) && !isIn(member_level, name, true)) return false;
        const there = reads.every((c) => columns.includes(c));
        if (there && isIn(member_level, name, true) && !reads.every((c) => clear.includes(c))) return false;
      }
      if (filtered && grant.rows !== "state = 'open'") return false;
    }
    return true;
  });
  fc.assert(property, { numRuns: 80, seed: 20261130 });
  t.ok(granted > 20, `${granted} policies became a grant`);
  t.end();
});

const DATA_SQL = `
create schema shop;
create table shop.readers (reader_id int8 primary key, town text);
create table shop.loans (loan_id int8 primary key, reader_id int8, lent_on date, is_rare bool, fee numeric(8, 2));
insert into shop.readers values (1, 'Ahorn'), (2, 'Birk');
insert into shop.loans values
  (1, 1, '2026-01-03', true, 4), (2, 1, '2026-01-20', false, 1), (3, 2, '2026-02-02', false, 2),
  (4, 2, '2026-02-09', true, null), (5, 1, '2026-02-11', false, 3);
create schema post;
create table post.parcels (parcel_no numeric primary key, zone numeric, price numeric, sent_at timestamp);
insert into post.parcels values
  (1, 1, 10, '2026-01-01'), (2, 2, 20, '2026-01-02'), (3, 5, 40, '2026-01-03'), (4, 9, 80, '2026-01-04');
create schema trade;
create table trade.bakers (baker_id int8 primary key, town text);
create table trade.sacks (
  lot int8, sack_no int8, buyer_id int8, kilos numeric, price numeric, sold_on date, primary key (lot, sack_no)
);
insert into trade.bakers values (1, 'Ahorn'), (2, 'Birk');
insert into trade.sacks values
  (1, 1, 1, 10, 2, '2026-01-01'), (1, 2, 1, 5, 2, '2026-01-02'), (2, 1, 2, 20, 1, '2026-01-03');
`;

const SERVED = [
  imported('dbt', fixture('dbt/loans.yml').text, { schema: 'shop', kind: 'pglite' }),
  imported('cube', fixture('cube/parcels.yml').text, { kind: 'pglite' }),
  imported('ossie', fixture('ossie/mill.yml').text, { kind: 'pglite' }),
] as const;

/** One manifest of all that the three imports declare; to start a gateway for each takes too long. */
function together(): ImportResult['document'] {
  const documents = SERVED.map((m) => m.document);
  const [first] = SERVED;
  const tables = documents.map((d) => d.connectors['db']?.tables);
  return {
    ...first.document,
    connectors: { db: { kind: 'pglite', tables: Object.assign({}, ...tables) } },
    entities: Object.assign({}, ...documents.map((d) => d.entities)),
    relationships: Object.assign({}, ...documents.map((d) => d.relationships)),
    metrics: Object.assign({}, ...documents.map((d) => d.metrics)),
  };
}

test('one model of each format answers as it should, under the policy that came with it', async (t) => {
  const [, { policy }] = SERVED;
  const everything = ['loan', 'reader', 'sacks', 'bakers'].map((on) => ({ on, columns: '*' as const }));
  const rest = await startRest({
    manifest: manifestText(together()),
    policy: policyText({
      ...policy,
      subjects: {
        'user:all': { ceiling: ['all'] },
        'user:clerk': { ceiling: ['clerks'] },
        'user:near': { ceiling: ['near'] },
        'user:both': { ceiling: ['clerks', 'far'] },
        'user:none': { ceiling: [] },
      },
      roles: { ...policy.roles, all: { grants: everything } },
    }),
    script: DATA_SQL,
  });
  t.teardown(() => rest.close());
  for (const schema of ['post', 'trade']) await rest.test.engine.system.grantRead(schema);
  const ask = async (subject: string, body: object) => comparable(await answerOf(rest, subject, { ...body }));

  const loans = ['fees', 'loans', 'median_fee', 'rare_share', 'common_share', 'fees_each'];
  t.same(await ask('user:all', { metrics: loans }), ['[10,5,2.5,0.4,0.6,5]'], 'dbt');
  const towns = { metrics: ['fees'], group_by: ['reader__town'] };
  t.same(await ask('user:all', towns), ['["Ahorn",8]', '["Birk",2]']);
  const growth = { metrics: ['fee_growth'], group_by: [{ name: 'metric_time', grain: 'month' }] };
  const grown = ['["2026-01-01",null]', '["2026-02-01",0]'];
  t.same(await ask('user:all', growth), grown, 'against the month before');

  t.same(
    await ask('user:all', { metrics: ['income', 'bakers_served', 'income_each'] }),
    ['[50,2,25]'],
    'Ossie',
  );
  const computed = { osql: 'select sack_no, line_total from osl.entities.sacks where lot = 1' };
  t.same(await ask('user:all', computed), ['[1,20]', '[2,10]']);

  const prices = { osql: 'select parcel_no, price from osl.entities.parcel' };
  const totals = { metrics: ['parcels', 'postage'] };
  t.same(await ask('user:clerk', totals), ['[4,null]'], 'Cube: all rows, and no price');
  t.same(await ask('user:clerk', prices), ['[1,null]', '[2,null]', '[3,null]', '[4,null]']);
  t.same(await ask('user:near', totals), ['[2,30]'], 'some rows, with prices');
  t.same(
    await ask('user:both', prices),
    ['[1,null]', '[2,null]', '[3,40]', '[4,null]'],
    'masks but for these',
  );
  t.not((await rest.ask('user:none', totals)).status, 200);
});
