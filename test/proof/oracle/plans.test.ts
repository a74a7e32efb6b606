import { ready } from 'osl-compiler';
import t from 'tap';
import { accessWith, CATALOG, tables } from '../../../bench/barrier/data.js';
import { QUESTIONS, type Question } from '../../../bench/barrier/questions.js';
import { preparedFor, scansOf } from '../../../bench/barrier/statements.js';
import { clientOf, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';

/**
 * Under a row filter Postgres reads the tables of each question of the bench as it does without policy: by the same
 * indexes, in the same order. What an index alone answers without policy may look up the row for the filter.
 */
const ROWS = 20_000;
t.setTimeout(600_000);

const key = (i: number, rows: number): number => 1 + ((i * 7919 + 12) % rows);

/** Joins of more than a key, or of none. */
const JOINS: readonly Question[] = [
  {
    id: 'join.key_and_range',
    predicate: 'LEFT JOIN on a key and a range',
    text: (i, rows) =>
      'select a.owner, t.memo from account a left join transfer t on t.account_id = a.id ' +
      `and t.amount between 1.0 and 1500.0 where a.id = ${key(i, rows)}`,
  },
  {
    id: 'join.key_and_lower',
    predicate: 'LEFT JOIN on a key and what asks first',
    text: (i, rows) =>
      'select a.owner, t.memo from account a left join transfer t on t.account_id = a.id ' +
      `and lower(t.memo) like lower(a.owner) where a.id = ${key(i, rows)}`,
  },
  {
    id: 'join.null_safe',
    predicate: 'a null-safe key as Power BI writes it, one side of which is a primary key',
    text: (i, rows) =>
      'select t.memo from (select id, owner from account) a join (select account_id as k, memo from transfer) t ' +
      `on (t.k = a.id or (t.k is null and a.id is null)) where a.id = ${key(i, rows)}`,
  },
  {
    id: 'join.series_limit',
    predicate: 'the top groups joined back on a dimension',
    text: (i, rows) =>
      'select a.opened, count(*) from account a join (select opened as o, count(*) as n from account ' +
      `where balance < ${i + 5}.0 group by 1 order by 2 desc, 1 limit 3) s on s.o = a.opened ` +
      `where a.id = ${key(i, rows)} group by 1`,
  },
  {
    id: 'join.figure',
    predicate: 'CROSS JOIN of a figure',
    text: (i, rows) =>
      'select a.owner, m.most from account a cross join (select max(balance) as most from account) m ' +
      `where a.id = ${key(i, rows)}`,
  },
  {
    id: 'join.bands',
    predicate: 'bands of an indexed column',
    text: () =>
      "select b.name, max(t.memo) from transfer t join (values (1.0, 1.5, 'a'), (7.0, 7.5, 'b')) b (lo, hi, name) " +
      'on t.amount between b.lo and b.hi group by 1',
  },
];

/** Of types whose operators an index of another kind serves: what is asked, and that index. */
const TYPED: readonly (readonly [where: string, index: string])[] = [
  ["words @@ plainto_tsquery('w17 v3')", 'sight_words_idx'],
  ["words @@ phraseto_tsquery('w17 v3')", 'sight_words_idx'],
  ["words @@ plainto_tsquery('english', 'w17 v3')", 'sight_words_idx'],
  ["words @@ websearch_to_tsquery('w17 -v3')", 'sight_words_idx'],
  ["host << '10.0.17.0/28'", 'sight_host_idx'],
  ["host <<= '10.0.17.3/32'", 'sight_host_idx'],
  ["'10.0.17.0/30' >>= host", 'sight_host_idx'],
  ["host && '10.0.17.0/30'", 'sight_host_idx'],
  ['span @> 1717', 'sight_span_idx'],
  ["span && '[1717,1718)'", 'sight_span_idx'],
  ["span <@ '[1700,1720)'", 'sight_span_idx'],
  ['1717 <@ span', 'sight_span_idx'],
  ["during @> timestamptz '2026-01-05 12:00:00+00'", 'sight_during_idx'],
  ['during && \'["2026-01-05 12:00:00+00","2026-01-05 12:01:00+00")\'', 'sight_during_idx'],
  ["span @> 1717 and upper(region) = 'EU'", 'sight_span_idx'],
  ["lower(tag) = 't17'", 'sight_lower_idx'],
  ["upper(tag) = 'T17' and id < 5000", 'sight_upper_idx'],
  ["lower(tag) in ('t17', 't18') and region like 'e%'", 'sight_lower_idx'],
  ["words @@ plainto_tsquery('w17') and span && '[17,400)'", 'sight_words_idx'],
];

const SIGHT = `
  create table bench.sight (
    id int8 primary key, region text not null, words tsvector not null, host inet not null, span int4range not null,
    during tstzrange not null, tag varchar(20) not null
  );
  insert into bench.sight
    select i, case when i % 10 = 0 then 'us' else 'eu' end, array_to_tsvector(array['w' || i % 5000, 'v' || i % 7]),
      inet '10.0.0.0' + i, int4range(i, i + 3), tstzrange(at, at + interval '1 minute'),
      'T' || i
    from (select i::int4, timestamptz '2026-01-01 00:00:00+00' + i * interval '1 minute' as at
      from generate_series(1, ${ROWS}) as i) as rows;
  create index on bench.sight using gin (words);
  create index on bench.sight using gist (host inet_ops);
  create index on bench.sight using gist (span);
  create index on bench.sight using gist (during);
  create index on bench.sight (lower(tag));
  create index on bench.sight (upper(tag));
  vacuum analyze bench.sight`;

/** Where it cannot, and why. */
const OTHERWISE: ReadonlyMap<string, string> = new Map([
  ['barrier.index_only', 'the index has no `region`, so each row is looked up'],
]);

await ready();
const postgres = await startNativePostgres();
if (postgres === null) t.test('plans under policy', { skip: NO_NATIVE }, async () => undefined);
else
  t.test('plans under policy are those without', async (t) => {
    const client = await clientOf(t, postgres);
    for (const script of tables(ROWS)) await client.query(script);
    const plan = { rows: ROWS, asks: 1 };
    for (const statement of SIGHT.split(';')) await client.query(statement);
    for (const mode of ['auto', 'force_generic_plan']) {
      await client.query(`set plan_cache_mode = ${mode}`);
      for (const [where, index] of TYPED) {
        const text = (): string => `select id from sight where ${where} order by id limit 100`;
        const question = { id: 'typed', predicate: where, text };
        const prepared = preparedFor(question, plan, {
          name: 'plan',
          catalog: CATALOG,
          access: accessWith("region = 'eu'"),
        });
        const scans = await scansOf(client, prepared);
        t.ok(scans.split(' ').includes(index), `${where}, ${mode}: ${scans}`);
      }
    }
    await client.query('reset plan_cache_mode');
    for (const question of [...QUESTIONS, ...JOINS]) {
      const scans = async (rows: string | null): Promise<string> => {
        const to = { name: 'plan', catalog: CATALOG, access: accessWith(rows) };
        return (await scansOf(client, preparedFor(question, plan, to))).replaceAll('Index Only', 'Index');
      };
      const [governed, open] = [await scans("region = 'eu'"), await scans(null)];
      const reason = OTHERWISE.get(question.id);
      if (reason === undefined) t.equal(governed, open, `${question.id}: ${governed}`);
      else t.not(governed, open, `${question.id}: ${reason}`);
    }
  });
