import t from 'tap';
import { at, startForms } from './fixture.js';
import { TICKETS, TICKETS_MANIFEST, TICKETS_POLICY, ticketScript } from './tickets.js';

t.setTimeout(180_000);

const forms = await startForms({
  manifest: TICKETS_MANIFEST,
  policy: TICKETS_POLICY,
  script: ticketScript(TICKETS),
  schema: 'desk',
});
t.teardown(() => forms.close());
const { ask } = forms;

const LABELS = "ARRAY['refund', 'delivery']";
const KIND = `classify(body, ${LABELS})`;

/** The values of each row, without their names. */
async function rowsOf(subject: string, osql: string): Promise<readonly (readonly unknown[])[]> {
  const { rows, status, message } = await ask(subject, osql);
  if (status !== 200) throw new Error(`${osql}: ${message}`);
  return rows.map((r) => Object.values(r));
}

t.test(
  'an operator maps over a text of an entity: a value for each row, NULL where there is no text',
  async (t) => {
    t.same(await rowsOf('user:all', `select id, ${KIND} as kind from osl.entities.ticket order by id`), [
      [1, 'refund'],
      [2, 'delivery'],
      [3, 'delivery'],
      [4, 'refund'],
      [5, null],
      [6, 'delivery'],
      [7, 'delivery'],
      [8, null],
    ]);
  },
);

/** Each question with its answer for who sees everything. */
const ANSWERS: readonly (readonly [question: string, ...rows: readonly (readonly unknown[])[]])[] = [
  [
    `select ${KIND} as kind, count(*) as n, sum(amount) as total from osl.entities.ticket group by 1 order by n desc, 1`,
    ['delivery', '4', '20.00'],
    ['refund', '2', '6.00'],
    [null, '2', '14.00'],
  ],
  [`select id from osl.entities.ticket where ${KIND} = 'refund' and status <> 'closed' order by id`, [1]],
  [
    `select status, ${KIND} as kind from osl.entities.ticket where id < 7 order by kind nulls first, status, id`,
    ['urgent', null],
    ['urgent', 'delivery'],
    ['open', 'delivery'],
    ['closed', 'delivery'],
    ['open', 'refund'],
    ['closed', 'refund'],
  ],
  [
    `select t.status, t.kind from (select status, ${KIND} as kind from osl.entities.ticket) t where t.kind is not null and t.status < 'closed' order by t.status, t.kind`,
    ['urgent', 'delivery'],
    ['open', 'delivery'],
    ['open', 'delivery'],
    ['open', 'refund'],
  ],
  [
    `with late as (select id, body from osl.entities.ticket where body like '%late%') select id, similarity(body, 'late delivery') > 0.5 as near from late order by id limit 2`,
    [2, true],
    [3, true],
  ],
  [
    `select id, tag(q.words, ARRAY['ticket', 'tickets'], threshold => 0.1) as tags from (select id, subject || ' is a ticket' as words from osl.entities.ticket) q where id = 1`,
    [1, ['ticket', 'tickets']],
  ],
  [
    `select a.id, classify(t.body, ${LABELS}) as kind from osl.entities.agent a join osl.entities.ticket t on a.id = t.id order by a.id desc`,
    [2, 'delivery'],
    [1, 'refund'],
  ],
  [
    `select id, dedup(body) ->> 'of' as same_as, (dedup(body) ->> 'is_duplicate')::bool as again from osl.entities.ticket where body like '%again' order by id`,
    [3, null, false],
    [6, '3', true],
    [7, '3', true],
  ],
  [
    `select id, rank(body, query => 'refund') as place from osl.entities.ticket where id in (1, 2, 4) order by place`,
    [4, 1],
    [1, 2],
    [2, 3],
  ],
  [
    `select cluster(body, k => 2) as c, count(*) as n from osl.entities.ticket where id in (3, 6, 7, 1) group by c order by c`,
    [1, '1'],
    [2, '3'],
  ],
  [
    `select id, outlier(body, k => 1) > 0.5 as strange from osl.entities.ticket where id in (3, 6, 1) order by id`,
    [1, true],
    [3, false],
    [6, false],
  ],
  [
    `select ${KIND} as kind, row_number() over (partition by ${KIND} order by id desc) as n from osl.entities.ticket where id < 4 order by id`,
    ['refund', '1'],
    ['delivery', '2'],
    ['delivery', '1'],
  ],
  [
    `select id, ${KIND} as kind, (select count(*) from osl.entities.agent a where a.id = t.id) as agents from osl.entities.ticket t where id < 4 order by id`,
    [1, 'refund', '1'],
    [2, 'delivery', '1'],
    [3, 'delivery', '0'],
  ],
  [
    `select distinct ${KIND} as kind from osl.entities.ticket where body <> '' order by kind`,
    ['delivery'],
    ['refund'],
  ],
  [
    `select id, ${KIND} from osl.entities.ticket where region = 'eu' union all select id, ${KIND} from osl.entities.ticket where id = 2 order by id`,
    [1, 'refund'],
    [2, 'delivery'],
    [3, 'delivery'],
    [5, null],
    [7, 'delivery'],
  ],
];

for (const [question, ...expected] of ANSWERS) {
  t.test(question, async (t) => {
    const answer = await ask('user:all', question);
    t.same([answer.status, answer.message, answer.rows.map((r) => Object.values(r))], [200, '', expected]);
  });
}

t.test('values beside an operator are what they are without it, to the last digit', async (t) => {
  const columns =
    "id, region, status, subject, body, amount, seen, doc, notes, doc -> 'n' as n, amount / 3 as third";
  const client = await forms.wire('user:all');
  const plain = await client.simple(`select ${columns} from osl.entities.ticket order by id`);
  const beside = await client.simple(
    `select ${columns} from (select ${columns}, ${KIND} as kind from osl.entities.ticket) t order by t.id`.replace(
      "select id, region, status, subject, body, amount, seen, doc, notes, doc -> 'n' as n, amount / 3 as third from (",
      'select id, region, status, subject, body, amount, seen, doc, notes, n, third from (',
    ),
  );
  t.match(plain.outcome, { kind: 'rows', rows: { length: TICKETS.length } });
  t.same(beside.outcome, plain.outcome);
});

t.test('the texts are those that the caller is shown', async (t) => {
  const question = `select id, ${KIND} as kind from osl.entities.ticket order by id`;
  await t.test('rows that it may not see are none', async (t) => {
    t.same(await rowsOf('user:eu', question), [
      [1, 'refund'],
      [3, 'delivery'],
      [5, null],
      [7, 'delivery'],
    ]);
  });
  await t.test('a masked text is the mask, and the answer says so', async (t) => {
    const answer = await ask('user:veil', question);
    t.equal(new Set(answer.rows.filter((r) => r['id'] !== 5).map((r) => r['kind'])).size, 1);
    t.same(at(answer.json, 'redacted_columns'), ['ticket.body']);
    const near = `select similarity(body, '[redacted]') as same from osl.entities.ticket where id in (1, 2)`;
    t.same(await rowsOf('user:veil', near), [[1], [1]]);
  });
  await t.test('masked in some rows, it is the mask in those', async (t) => {
    const near = `select id, similarity(body, '[redacted]') = 1 as veiled from osl.entities.ticket where id in (1, 2, 3, 4) order by id`;
    t.same(await rowsOf('user:part', near), [
      [1, false],
      [2, true],
      [3, false],
      [4, true],
    ]);
  });
  await t.test('a column that is denied, and rows that may only be counted, are refused', async (t) => {
    t.match(await ask('user:den', question), { status: 403, code: 'E2101' });
    t.match(await ask('user:sum', question), { status: 403, code: 'E2103' });
    const counted = `select ${KIND} as kind, count(*) from osl.entities.ticket group by 1`;
    t.match(await ask('user:sum', counted), { status: 403, code: 'E2103' });
    t.match(await ask('user:nil', question), { code: 'E2102' });
  });
});

t.test('operators take so many rows, and the refusal says how to page', async (t) => {
  const many = 'osl.entities.ticket t join osl.entities.ticket u on t.id = u.id';
  const twice = (more: string): string =>
    `select q.id, classify(q.body, ${LABELS}) as kind from (select id, body from osl.entities.ticket union all select id + 100, body from osl.entities.ticket) q ${more}`;
  const refused = await ask('user:all', twice(''));
  t.match(refused, { status: 400, code: 'E0519', message: /more than 12 rows/ });
  t.equal((await ask('user:all', twice('order by q.id limit 3'))).rows.length, 3, 'LIMIT holds before');
  t.equal((await ask('user:all', twice('order by q.id limit 3 offset 14'))).rows.length, 2);
  t.match(
    await ask('user:all', twice('order by kind limit 3')),
    { code: 'E0519' },
    'not where an operator orders',
  );
  t.match(await ask('user:all', twice('order by q.id limit 13')), { code: 'E0519' });
  t.equal((await ask('user:all', `select t.id, classify(t.body, ${LABELS}) from ${many}`)).rows.length, 8);
  const ranked = `select q.id, rank(q.body, query => 'refund') as place from (select id, body from osl.entities.ticket order by id limit 3) q order by place`;
  t.equal((await ask('user:all', ranked)).rows.length, 3);
});

/** Refused queries, and their messages. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  'select classify(body) from osl.entities.ticket': /CLASSIFY over rows needs `labels`/,
  'select rank(body) from osl.entities.ticket': /RANK over rows needs `query`/,
  'select similarity(body) from osl.entities.ticket': /SIMILARITY over rows needs `reference`/,
  "select classify(id, ARRAY['a']) from osl.entities.ticket": /text/,
  "select classify(body, ARRAY['a', 'a']) from osl.entities.ticket": /label `a` twice/,
  'select classify(body, ARRAY[status]) from osl.entities.ticket': /labels/,
  "select (select classify(t.body, ARRAY['a']) from osl.entities.agent a where a.id = t.id) from osl.entities.ticket t":
    /its own SELECT/,
  "select classify(q.kind, ARRAY['a']) from (select classify(body, ARRAY['b']) as kind from osl.entities.ticket) q":
    /operator over these rows/,
  "select id from osl.entities.ticket t join osl.entities.agent a on a.id = t.id and classify(t.body, ARRAY['a']) = 'a'":
    /its own SELECT/,
};

for (const [question, message] of Object.entries(REFUSED)) {
  t.test(`refused: ${question}`, async (t) => {
    t.match(await ask('user:all', question), { status: 400, code: 'E0511', message });
  });
}

t.test('on the wire, and explained with the cap', async (t) => {
  const client = await forms.wire('user:eu');
  const { outcome } = await client.simple(`select id, ${KIND} from osl.entities.ticket order by id limit 2`);
  t.match(outcome, {
    kind: 'rows',
    rows: [
      ['1', 'refund'],
      ['3', 'delivery'],
    ],
  });
  const { json } = await ask('user:eu', `select ${KIND} from osl.entities.ticket`, { explain: true });
  t.match(JSON.stringify(json), /"operators over rows".*"max_rows":12/);
});

t.test('labels, limits and what WHERE compares with may be parameters', async (t) => {
  const osql =
    'select id, classify(body, $1) as kind from osl.entities.ticket where id > $2 order by id limit $3';
  const { rows, message } = await ask('user:all', osql, { parameters: ['["refund", "delivery"]', 1, 2] });
  t.same(
    [message, rows.map((r) => Object.values(r))],
    [
      '',
      [
        [2, 'delivery'],
        [3, 'delivery'],
      ],
    ],
  );
});

t.test('the audit record names the entity, and what of it was masked', async (t) => {
  const { requestId, rows } = await ask('user:veil', `select ${KIND} from osl.entities.ticket where id = 1`);
  t.equal(rows.length, 1);
  const records = await forms.test.records(requestId);
  const objects = ['osl.entities.ticket'];
  t.match(
    records.find((r) => r.kind === 'decision'),
    { form: 'structured', decision: 'allow', objects },
  );
});

t.test('what would be too much text is refused before an operator begins', async (t) => {
  const long = (units: number): string =>
    `select classify(q.long, ${LABELS}) from (select repeat('x', ${units}) as long from osl.entities.ticket) q`;
  t.match(await ask('user:all', long(3_000_000)), {
    code: 'E0511',
    message: /multiplications of CLASSIFY over so many texts/,
  });
  t.match(await ask('user:all', long(9_000_000)), { code: 'E0511', message: /a step of the question reads/ });
});

t.test('an answer that policy wants in a total order has one above operators, too', async (t) => {
  const grouped = `select region, count(classify(region, ARRAY['a'])) as n from osl.entities.agent group by region`;
  t.same(await rowsOf('user:all', grouped), [
    ['eu', '1'],
    ['us', '1'],
  ]);
});

const ODD = `from osl.entities.ticket`;

/** Clauses that operators may meet, each with the number of rows or the code of the refusal. */
const CLAUSES: readonly (readonly [question: string, outcome: number | string])[] = [
  [`select *, ${KIND} as kind ${ODD}`, 8],
  [`select ${KIND} as kind, region, count(*) ${ODD} group by rollup (kind, region)`, 10],
  [`select distinct on (${KIND}) id, ${KIND} ${ODD} order by ${KIND}, id`, 3],
  [`select max(${KIND}) as last, count(${KIND}) filter (where status < 'closed') as n ${ODD}`, 1],
  [`select region ${ODD} group by region having count(distinct ${KIND}) > 1`, 2],
  [`select id, ${KIND} ${ODD} order by id limit null offset 6`, 2],
  [`select id, ${KIND} ${ODD} order by id fetch first 2 rows only`, 2],
  [`select id, ${KIND} as kind ${ODD} order by kind nulls last fetch first 1 rows with ties`, 4],
  [`select unnest(array[1, 2]) as n, ${KIND} ${ODD} where id = 1`, 2],
  [
    `select count(*) from (select ${KIND} as kind ${ODD}) a where a.kind in (select ${KIND} ${ODD} where id = 1)`,
    'E0514',
  ],
  [`select 1 from (select id, ${KIND} as a ${ODD}) a cross join (select ${KIND} as b ${ODD}) b`, 'E0514'],
  [
    `select a.kind from (select id, ${KIND} as kind ${ODD}) a join osl.entities.agent g on a.id = g.id`,
    'E0514',
  ],
  [`select id ${ODD} where id in (select id ${ODD} where ${KIND} = 'refund')`, 'E0514'],
  [
    `select l.kind from osl.entities.agent a cross join lateral (select classify(t.body, ${LABELS}) as kind ${ODD} t where t.id = a.id) l`,
    'E0511',
  ],
  [`select ${KIND} ${ODD} where exists (select 1 from (select ${KIND} as k ${ODD}) q)`, 'E0511'],
  [`select id ${ODD} where exists (select 1 from (select ${KIND} as k ${ODD}) q)`, 'E0514'],
  [
    `with recursive r as (select id, body ${ODD} where id = 1 union all select r.id, r.body from r where false) select ${KIND} from r`,
    'E0511',
  ],
  [`select ${KIND}, count(*) ${ODD}`, 'E0511'],
  [`select region, ${KIND} ${ODD} group by region`, 'E0511'],
  [`select ${KIND}, row_number() over (order by ${KIND}, id) as n ${ODD} limit 3`, 3],
  [
    `select case when ${KIND} = 'refund' then amount else 0 end as cost, doc -> 'n' as n ${ODD} order by cost desc, id`,
    8,
  ],
  [`select percentile_disc(0.5) within group (order by ${KIND}) ${ODD}`, 1],
  [`select lower(${KIND}) || status as k, count(*) ${ODD} group by k`, 6],
  [`with a as (select id, body ${ODD}), b as (select id, body from a where id < 4) select ${KIND} from b`, 3],
];

for (const [question, outcome] of CLAUSES) {
  t.test(question, async (t) => {
    const { code, rows, message } = await ask('user:all', question);
    t.equal(code === '' ? rows.length : code, outcome, message);
  });
}
