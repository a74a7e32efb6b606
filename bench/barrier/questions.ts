/** A query that is run many times, each time with other values. */
export interface Question {
  readonly id: string;
  readonly predicate: string;
  /** Text of the `i`th run, for tables of `rows` rows. */
  readonly text: (i: number, rows: number) => string;
  /** Sent as raw SQL, which can join on any predicate. */
  readonly raw?: true;
}

export const QUESTIONS: readonly Question[] = [
  {
    id: 'barrier.point',
    predicate: '`id = 17`',
    text: (i, rows) => `select owner from account where id = ${key(i, rows)}`,
  },
  {
    id: 'barrier.numeric_key',
    predicate: '`code = 17.0`, a numeric key',
    text: (i, rows) => `select owner from account where code = ${key(i, rows)}.0`,
  },
  {
    id: 'barrier.date_range',
    predicate: '`opened between …`',
    text: (i) => `select max(owner) from account where opened between '${day(i)}' and '${day(i + 1)}'`,
  },
  {
    id: 'barrier.numeric_range',
    predicate: '`balance between …`, numeric',
    text: (i) => `select max(owner) from account where balance between ${i * 10}.0 and ${i * 10 + 5}.0`,
  },
  {
    id: 'barrier.like',
    predicate: '`owner like …`, a pattern that was looked at',
    text: (i) => `select sum(balance) from account where owner like 'owner ${100 + (i % 900)}%'`,
  },
  {
    id: 'barrier.point_and_like',
    predicate: '`id = 17 and owner like …`',
    text: (i, rows) => `select owner from account where id = ${key(i, rows)} and owner like 'owner%'`,
  },
  {
    id: 'barrier.point_and_lower',
    predicate: '`id = 17 and lower(owner) <> …`',
    text: (i, rows) => `select owner from account where id = ${key(i, rows)} and lower(owner) <> 'nobody'`,
  },
  {
    id: 'barrier.not_over_or',
    predicate: '`not (id <> 17 or lower(owner) = …)`',
    text: (i, rows) =>
      `select owner from account where not (id <> ${key(i, rows)} or lower(owner) = 'nobody')`,
  },
  {
    id: 'barrier.of_literals',
    predicate: '`id = abs(-17) and opened >= make_date(…)`',
    text: (i, rows) =>
      `select owner from account where id = abs(-${key(i, rows)}) and opened >= make_date(2019, 12, 1)`,
  },
  {
    id: 'barrier.one_row',
    predicate: '`id = (select … limit 1)`',
    text: (i, rows) =>
      'select owner from account where id = ' +
      `(select account_id from transfer where id = ${key(i, rows)} limit 1)`,
  },
  {
    id: 'barrier.keyed_join',
    predicate: 'two tables joined by key, one named by key, LIKE on both',
    text: (i, rows) =>
      'select count(*) from account a join transfer t on t.account_id = a.id ' +
      `where a.id = ${key(i, rows)} and a.owner like 'owner%' and t.memo like 'memo%'`,
  },
  {
    id: 'barrier.asked_join',
    predicate: 'the same with `lower(…) like …` on both sides',
    text: (i, rows) =>
      'select count(*) from account a join transfer t on t.account_id = a.id ' +
      `where a.id = ${key(i, rows)} and lower(a.owner) like 'owner%' and lower(t.memo) like 'memo%'`,
  },
  {
    id: 'barrier.numeric_join',
    predicate: 'two tables joined by numeric keys',
    text: (i, rows) =>
      'select count(*) from account a join transfer t on t.account_code = a.code ' +
      `where a.id = ${key(i, rows)} and lower(t.memo) like 'memo%'`,
  },
  {
    id: 'barrier.left_join',
    predicate: 'LEFT JOIN with `lower(t.memo) like …` in its ON',
    raw: true,
    text: (i, rows) =>
      'select a.owner, t.memo from bench.account a left join bench.transfer t on t.account_id = a.id ' +
      `and lower(t.memo) like 'memo%' where a.id = ${key(i, rows)}`,
  },
  {
    id: 'barrier.three_way_join',
    predicate: 'three tables joined by key, `lower(e.note) <> …` on the last',
    text: (i, rows) =>
      'select a.owner, e.note from account a join transfer t on t.account_id = a.id join entry e on e.transfer_id = t.id ' +
      `where a.id = ${key(i, rows)} and lower(e.note) <> 'none'`,
  },
  {
    id: 'barrier.in_query',
    predicate: '`id in (select account_id … where lower(memo) <> …)`',
    text: (i, rows) =>
      'select owner from account where id in (select account_id from transfer ' +
      `where id between ${key(i, rows)} and ${key(i, rows) + 20} and lower(memo) <> 'none')`,
  },
  {
    id: 'barrier.exists',
    predicate: '`exists (… where t.account_id = a.id and 100 / (t.amount + 1) > …)`',
    text: (i, rows) =>
      `select owner from account a where a.id between ${key(i, rows)} and ${key(i, rows) + 20} and exists ` +
      '(select 1 from transfer t where t.account_id = a.id and 100 / (t.amount + 1) > 2.0)',
  },
  {
    id: 'barrier.group_by_range',
    predicate: 'GROUP BY over a numeric range',
    text: (i) =>
      'select opened, count(*), sum(balance) from account ' +
      `where balance between ${i * 10}.0 and ${i * 10 + 9}.0 group by opened`,
  },
  {
    id: 'barrier.top_n',
    predicate: 'the ten largest of an indexed numeric column',
    text: (i) =>
      `select id, owner from account where balance < ${1000 + i}.0 order by balance desc, id desc limit 10`,
  },
  {
    id: 'barrier.keyset_page',
    predicate: '`balance > … and 1000 / (balance + 1) < … order by balance, id limit 20`',
    text: (i) =>
      `select id, owner from account where balance > ${i * 100}.0 and 1000 / (balance + 1) < 1999.5 ` +
      'order by balance, id limit 20',
  },
  {
    id: 'barrier.array_search',
    predicate: '`words @> array[…]`, GIN',
    text: (i) => `select max(owner) from account where words @> array['w${i * 3}']`,
  },
  {
    id: 'barrier.partitions',
    predicate: 'one day of a table in monthly partitions, a numeric range and a division beside it',
    text: (i) =>
      `select count(id) from event where day = '2020-${String(1 + (i % 12)).padStart(2, '0')}-07' ` +
      `and cost between ${i}.0 and ${i + 5}.0 and 10 / (cost + 1) > -0.5`,
  },
  {
    id: 'barrier.joined_and_equal',
    predicate: 'the keyed join with `lower(t.memo) = lower(a.owner)` beside the key',
    text: (i, rows) =>
      'select count(*) from account a join transfer t on t.account_id = a.id ' +
      `where a.id = ${key(i, rows)} and lower(t.memo) = lower(a.owner)`,
  },
  {
    id: 'barrier.latest',
    predicate: '`opened = (select min(opened) … where opened > …)`',
    text: (i) =>
      `select max(owner) from account where opened = (select min(opened) from account where opened > '${day(i)}')`,
  },
  {
    id: 'barrier.covered',
    predicate: '`count(*)` of a numeric range by an index that includes `region`',
    text: (i) => `select count(*) from transfer where amount between ${i}.0 and ${i}.5`,
  },
  {
    id: 'barrier.index_only',
    predicate: '`count(*)` of a range that the index alone answers where no policy asks for `region`',
    text: (i) => `select count(*) from account where opened between '${day(i)}' and '${day(i + 1)}'`,
  },
];

/** Keys spread over the table, so that a run does not read one page again and again. */
function key(i: number, rows: number): number {
  return 1 + ((i * 7919 + 12) % rows);
}

function day(i: number): string {
  return new Date(Date.UTC(2020, 0, 1 + (i % 1_900))).toISOString().slice(0, 10);
}
