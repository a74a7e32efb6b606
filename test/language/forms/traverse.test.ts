import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { fc } from '../../support/fast-check.js';
import { at, startForms } from './fixture.js';
import {
  GRAPH_WORLD,
  type Graph,
  graphScript,
  graphs,
  type Hop,
  keyedScript,
  keySql,
  numberOf,
  visible,
  walk,
} from './graph.js';

t.setTimeout(3 * 3_600_000);

const RUNS = Number(process.env['OSL_TRAVERSE_RUNS'] ?? 20);

const forms = await startForms(GRAPH_WORLD);
t.teardown(() => forms.close());
const { ask } = forms;
const { system } = forms.test.engine;

const DIRECTIONS = ['in', 'out', 'both'] as const;

function linkHop(g: Graph, direction: (typeof DIRECTIONS)[number]): Hop {
  const out = g.links.map(([a, b]) => [a, b] as const);
  const back = g.links.map(([a, b]) => [b, a] as const);
  const ids = g.nodes.map(([id]) => id);
  const pairs = direction === 'out' ? out : direction === 'in' ? back : [...out, ...back];
  return { pairs, from: ids, to: ids };
}

function itemHop(g: Graph, via: 'owns' | 'likes'): Hop {
  return {
    pairs: g[via].map(([a, b]) => [a, b] as const),
    from: g.nodes.map(([id]) => id),
    to: g.items.map(([id]) => id),
  };
}

function groupHop(g: Graph): Hop {
  return {
    pairs: g.items.flatMap(([id, grp]) => (grp === null ? [] : [[id, grp] as const])),
    from: g.items.map(([id]) => id),
    to: g.groups.map(([id]) => id),
  };
}

function reversed({ pairs, from, to }: Hop): Hop {
  return { pairs: pairs.map(([a, b]) => [b, a] as const), from: to, to: from };
}

interface Asked {
  readonly target: string;
  readonly osql: string;
  readonly hops: readonly Hop[];
  readonly cap: number;
  /** Hops after which the walk is back at the entity that it began with; 0: it never is. */
  readonly round: number;
}

function traverse(
  target: string,
  keys: readonly number[],
  more: string,
  hops: readonly Hop[],
  cap: number | null,
  round = 0,
): Asked {
  const list = `(${keys.map((k) => `'${k}'`).join(', ')})`;
  const perHop = cap === null ? '' : `, per_hop => ${cap}`;
  const call = `TRAVERSE(anchor => 'node', target => '${target}', keys => ${list}${more}${perHop})`;
  return {
    target,
    osql: `select id, depth from ${call}`,
    hops,
    cap: cap ?? 1_000,
    round,
  };
}

/** Questions to every graph. */
function questions(g: Graph, keys: readonly number[], cap: number | null): readonly Asked[] {
  const walks = DIRECTIONS.flatMap((direction) =>
    [1, 2, 5].map((hops) => {
      const more = `, direction => '${direction}', max_hops => ${hops}`;
      return traverse(
        'node',
        keys,
        more,
        Array.from({ length: hops }, () => linkHop(g, direction)),
        cap,
        1,
      );
    }),
  );
  const items = (['owns', 'likes'] as const).flatMap((via) => [
    traverse('item', keys, `, via => '${via}'`, [itemHop(g, via)], cap),
    traverse('grp', keys, `, via => ('${via}', 'item_grp')`, [itemHop(g, via), groupHop(g)], cap),
  ]);
  // Over a bridge to another entity and back: to nodes that own the same items.
  const back = (['owns', 'likes'] as const).flatMap((via) =>
    [2, 5].map((hops) => {
      const there = itemHop(g, via);
      const ways = Array.from({ length: hops - (hops % 2) }, (_, i) =>
        i % 2 === 0 ? there : reversed(there),
      );
      return traverse('node', keys, `, via => '${via}', max_hops => ${hops}`, ways, cap, 2);
    }),
  );
  return [...walks, ...items, ...back];
}

t.test('every walk is the one that breadth-first search finds in the visible graph', async (t) => {
  const tally = { walks: 0, rows: 0, clipped: 0, blocked: 0 };
  const property = fc.asyncProperty(
    graphs,
    fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 3 }),
    fc.option(fc.integer({ min: 1, max: 8 }), { nil: null }),
    async (graph, keys, cap) => {
      await system.script(generatedSql(graphScript(graph)));
      for (const who of ['user:all', 'user:some']) {
        const seen = visible(graph, who === 'user:all');
        for (const [i, { osql, hops, cap: limit, round }] of questions(seen, keys, cap).entries()) {
          const expected = walk(hops, keys, limit, round);
          const answer = await ask(who, osql);
          const got = { rows: answer.rows, clipped: at(answer.json, 'truncated') };
          if (JSON.stringify(got) !== JSON.stringify(expected)) {
            throw new Error(
              `${who}: ${osql}: ${JSON.stringify(got)}, not ${JSON.stringify(expected)} ${answer.message}`,
            );
          }
          tally.walks++;
          tally.rows += expected.rows.length;
          if (expected.clipped) tally.clipped++;
          const open = questions(graph, keys, cap)[i];
          if (who === 'user:some' && open !== undefined) {
            const all = new Set(walk(open.hops, keys, 1_000, round).rows.map((r) => r.id));
            const shown = new Set((round > 0 ? seen.nodes : []).map(([id]) => id));
            const met = new Set(expected.rows.map((r) => r.id));
            // Visible, within reach of who sees everything, and yet not met: something hidden stands between.
            if ([...all].some((id) => shown.has(id) && !met.has(id))) tally.blocked++;
          }
        }
      }
    },
  );
  await fc.assert(property, { numRuns: RUNS, seed: 4 });
  t.comment(`${RUNS} graphs: ${JSON.stringify(tally)}`);
  t.ok(
    tally.rows > 8 * RUNS && tally.clipped > RUNS && tally.blocked > RUNS / 2,
    'the graphs were worth walking',
  );
});

/** The same question where nodes and items have keys of two columns. */
function keyed({ target, osql }: Asked, keys: readonly number[]): string {
  const shown = target === 'grp' ? 'id' : 'area, name';
  const list =
    keys.length === 1 ? `(${keys.map(keySql)})` : `(${keys.map((k) => `(${keySql(k)})`).join(', ')})`;
  return osql
    .replace('select id', `select ${shown}`)
    .replace(/keys => \([^)]*\)/, () => `keys => ${list}`)
    .replace(/'(node|item|owns|likes|item_grp)'/g, "'k$1'");
}

t.test('keys of two columns are walked as those of one are', async (t) => {
  const tally = { walks: 0, rows: 0, clipped: 0 };
  const property = fc.asyncProperty(
    graphs,
    fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 3 }),
    fc.option(fc.integer({ min: 1, max: 8 }), { nil: null }),
    async (graph, keys, cap) => {
      await system.script(generatedSql(keyedScript(graph)));
      for (const who of ['user:all', 'user:some']) {
        for (const asked of questions(visible(graph, who === 'user:all'), keys, cap)) {
          const expected = walk(asked.hops, keys, asked.cap, asked.round);
          const osql = keyed(asked, keys);
          const answer = await ask(who, osql);
          const rows = answer.rows.map((r) => ({
            id: asked.target === 'grp' ? r['id'] : numberOf(r['area'], r['name']),
            depth: r['depth'],
          }));
          const got = { rows, clipped: at(answer.json, 'truncated') };
          if (JSON.stringify(got) !== JSON.stringify(expected))
            throw new Error(
              `${who}: ${osql}: ${JSON.stringify(got)}, not ${JSON.stringify(expected)} ${answer.message}`,
            );
          tally.walks++;
          tally.rows += rows.length;
          if (expected.clipped) tally.clipped++;
        }
      }
    },
  );
  const runs = Math.max(10, Math.ceil(RUNS / 4));
  await fc.assert(property, { numRuns: runs, seed: 15 });
  t.comment(`${runs} graphs: ${JSON.stringify(tally)}`);
  t.ok(tally.rows > 8 * runs && tally.clipped > runs, 'the graphs were worth walking');
});

t.test('how keys of two columns are given', async (t) => {
  await system.script(generatedSql(keyedScript(RING)));
  const ids = async (who: string, keys: string, parameters: readonly unknown[] = []) => {
    const call = `TRAVERSE(anchor => 'knode', target => 'knode', keys => ${keys}, max_hops => 1)`;
    const { rows, code } = await ask(who, `select area, name from ${call}`, { parameters });
    return code === '' ? rows.map((r) => numberOf(r['area'], r['name'])).join(' ') : code;
  };
  const [one, three] = [keySql(1), keySql(3)];
  t.equal(await ids('user:all', `(${one})`), '2');
  t.equal(await ids('user:all', `((${one}))`), '2');
  t.equal(await ids('user:all', `((${one}), (${three}))`), '2 4', 'the anchors themselves are never found');
  t.equal(await ids('user:all', `array[(${one}), row(${three})]`), '2 4');
  t.equal(await ids('user:all', '($1, $2)', [0, 'b",']), '2');
  t.equal(await ids('user:all', 'unnest($1, $2)', ['{0,1}', '{"b\\",",a}']), '2 4');
  t.equal(
    await ids('user:all', `unnest(array[0, 0, null], array['b",', null, 'a'])`),
    '2',
    'NULL is not a key',
  );
  t.equal(await ids('user:all', 'unnest($1, $2)', ['{}', '{}']), '');
  t.equal(await ids('user:all', "('00', 'b\",')"), '2', 'an anchor is known again, however it is written');
  for (const wrong of [
    "('a')",
    "(0, 'a', 1)",
    "((0, 'a'), (1))",
    "((0, 'a'), 1)",
    '$1',
    'unnest($1)',
    "('x', 'a')",
  ])
    t.equal(await ids('user:all', wrong, wrong.includes('$1') ? ['{1}'] : []), 'E0511', wrong);
  t.equal(await ids('user:some', `(${keySql(5)})`), '', 'a hidden anchor leads nowhere');
  t.equal(await ids('user:some', `(${keySql(4)})`), '', 'nor is a hidden row found');
  t.equal(await ids('user:one', `(${one})`), 'E0512', 'an entity without a grant does not exist');
  t.equal(await ids('user:masked', `(${one})`), 'E0515', 'a key of which a part is masked is none');
  t.equal(await ids('user:masked', "(0, '[redacted]')"), 'E0515');
  t.equal(await ids('user:partly', `(${one})`), '2', 'where it is clear it is one');
  t.equal(await ids('user:partly', `(${keySql(5)})`), '', 'and where it is masked it leads nowhere');
  t.equal(await ids('user:partly', "(1, '[redacted]')"), '', 'by no name');
  t.equal(await ids('user:partly', `(${keySql(4)})`), '', 'nor does anything lead to it');
});

/** Result of a recursion in Postgres itself, policy written into it by hand; anchors that are hidden lead nowhere. */
async function recursive(
  keys: readonly number[],
  direction: (typeof DIRECTIONS)[number],
  maxHops: number,
  everything: boolean,
): Promise<readonly unknown[]> {
  const where = everything ? '' : 'where shown';
  const out = `select a, b from g.link ${where}`;
  const back = `select b, a from g.link ${where}`;
  const step = direction === 'out' ? out : direction === 'in' ? back : `${out} union ${back}`;
  return system.query(
    generatedSql(`with recursive step(a, b) as (${step}), node as (select id from g.node ${where}),
       walk(id, depth) as (
         select id, 0 from node where id = any($1::int4[])
         union
         select step.b, walk.depth + 1 from walk join step on step.a = walk.id join node on node.id = step.b
          where walk.depth < $2::int4)
     select id, min(depth) as depth from walk where id <> all($1::int4[]) group by id order by min(depth), id`),
    [keys, maxHops],
  );
}

t.test('walks without a cap are what a recursive query finds', async (t) => {
  let rows = 0;
  const property = fc.asyncProperty(
    graphs,
    fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 3 }),
    fc.constantFrom(...DIRECTIONS),
    fc.integer({ min: 1, max: 6 }),
    async (graph, keys, direction, hops) => {
      await system.script(generatedSql(graphScript(graph)));
      const more = `, direction => '${direction}', max_hops => ${hops}`;
      const { osql } = traverse('node', keys, more, [], null);
      for (const who of ['user:all', 'user:some']) {
        const expected = await recursive(keys, direction, hops, who === 'user:all');
        const answer = await ask(who, osql);
        if (JSON.stringify(answer.rows) !== JSON.stringify(expected))
          throw new Error(`${who}: ${osql}: ${JSON.stringify(answer.rows)}, not ${JSON.stringify(expected)}`);
        rows += expected.length;
      }
    },
  );
  await fc.assert(property, { numRuns: RUNS, seed: 11 });
  t.ok(rows > 2 * RUNS, `${rows} rows`);
});

/** 1 → 2 → 3 → 1, 3 → 4; node 5 hidden between 4 and 6. */
const RING: Graph = {
  nodes: [1, 2, 3, 4, 5, 6].map((n) => [n, n !== 5] as const),
  items: [
    [1, 1, true],
    [2, 1, true],
  ],
  groups: [[1, true]],
  links: [
    [1, 2, true],
    [2, 3, true],
    [3, 1, true],
    [3, 4, true],
    [4, 5, true],
    [5, 6, true],
  ],
  owns: [[1, 1, true]],
  likes: [[1, 2, true]],
};

t.test('particular walks', async (t) => {
  await system.script(generatedSql(graphScript(RING)));
  const from = (keys: string, more = '', target = 'node'): string =>
    `TRAVERSE(anchor => 'node', target => '${target}', keys => ${keys}${more})`;
  const ids = async (who: string, call: string, parameters: readonly unknown[] = []) => {
    const { rows, code } = await ask(who, `select id, depth from ${call}`, { parameters });
    return code === '' ? rows.map((r) => `${r['id']}@${r['depth']}`).join(' ') : code;
  };
  t.equal(await ids('user:all', from("('1')")), '2@1 3@2 4@3 5@4', 'four hops unless told');
  t.equal(await ids('user:all', from("('1')", ', max_hops => 16')), '2@1 3@2 4@3 5@4 6@5');
  t.equal(
    await ids('user:some', from("('1')", ', max_hops => 16')),
    '2@1 3@2 4@3',
    'hidden rows block the way',
  );
  t.equal(
    await ids('user:some', from("('5')", ", direction => 'both'")),
    '',
    'a hidden anchor leads nowhere',
  );
  t.equal(await ids('user:all', from("('1', '1', '99')")), '2@1 3@2 4@3 5@4');
  t.equal(
    await ids('user:all', from("('01')")),
    '2@1 3@2 4@3 5@4',
    'an anchor is known again, however it is written',
  );
  t.equal(await ids('user:all', from("('1', '03')")), '2@1 4@1 5@2 6@3');
  const shared = await ask('user:all', `select path from ${from("('1')", ", via => 'owns', max_hops => 2")}`);
  t.equal(shared.code, '', 'over a bridge and back');
  t.equal(
    await ids('user:all', from("('1')", ", via => 'owns', direction => 'out'")),
    'E1001',
    'no one way is both',
  );
  for (const keys of ['{1}', '{ 01 }', '{"1",NULL}', '{1,null}']) {
    t.equal(await ids('user:all', from('$1'), [keys]), '2@1 3@2 4@3 5@4', keys);
  }
  t.equal(await ids('user:all', from('$1'), ['{}']), '');
  t.equal(await ids('user:all', from('$1'), [null]), '');
  const item = (more: string): string => from("('1')", more, 'item');
  t.equal(await ids('user:all', item('')), 'E1001', 'two ways of one length');
  t.equal(await ids('user:all', from("('1')", '', 'grp')), 'E1001');
  t.equal(await ids('user:all', item(", via => 'owns'")), '1@1');
  t.equal(await ids('user:all', item(", via => 'likes'")), '2@1');
  t.equal(await ids('user:one', item('')), '1@1', 'only what the caller sees is ambiguous');
  t.equal(await ids('user:one', item(", via => 'likes'")), 'E0512');
  t.equal(await ids('user:all', item(", via => 'nope'")), 'E0512');
  t.equal(await ids('user:all', item(", via => 'item_grp'")), 'E1001', 'no way');
  t.equal(
    await ids('user:one', from("('1')", '', 'grp')),
    'E0512',
    'an entity without a grant does not exist',
  );
  t.equal(await ids('user:all', from("('1')", ", via => ('owns', 'item_grp')", 'grp')), '1@2');
  t.equal(
    await ids('user:all', from("('1')", ", via => ('owns', 'item_grp'), max_hops => 1", 'grp')),
    'E1001',
  );
  for (const wrong of [
    ", direction => 'up'",
    ', max_hops => 0',
    ', max_hops => 17',
    ', max_hops => $1',
    ', per_hop => 0',
    ', per_hop => 100001',
    ', via => 3',
    ', speed => 1',
    ', max_hops => 1, max_hops => 2',
  ]) {
    t.equal(await ids('user:all', from("('1')", wrong), wrong.includes('$1') ? [1] : []), 'E0511', wrong);
  }
  t.equal(await ids('user:all', from("('x')")), 'E0511');
  t.equal(await ids('user:all', "TRAVERSE(anchor => 'node', target => 'node')"), 'E0511');
  t.equal(await ids('user:all', "TRAVERSE(anchor => 'link', target => 'node', keys => ('1'))"), 'E0512');
  const paths = async (who: string, call: string): Promise<readonly unknown[]> =>
    (await ask(who, `select path from ${call}`)).rows.map((r) => r['path']);
  const place = (key: string) => ({ edge: 'link', entity: 'node', key });
  t.same(await paths('user:all', from("('1')", ', max_hops => 2')), [
    [{ entity: 'node', key: '1' }, place('2')],
    [{ entity: 'node', key: '1' }, place('2'), place('3')],
  ]);
  t.same(await paths('user:all', from("('1')", ", via => ('owns', 'item_grp')", 'grp')), [
    [
      { entity: 'node', key: '1' },
      { edge: 'owns', entity: 'item', key: '1' },
      { edge: 'item_grp', entity: 'grp', key: '1' },
    ],
  ]);
  const parent = await ask(
    'user:some',
    `select id, path -> -2 ->> 'key' as parent, path -> -1 ->> 'edge' as edge from ${from("('1')", ', max_hops => 16')}`,
  );
  t.same(
    parent.rows.map((r) => [r['id'], r['parent'], r['edge']].join(' ')),
    ['2 1', '3 2', '4 3'].map((p) => `${p} link`),
    'no hidden node stands on a way',
  );
  const star = await ask('user:all', `select * from ${from("('1')")}`);
  t.notOk(
    star.rows.some((r) => 'path' in r),
    '`*` is what it was',
  );
  for (const who of ['user:all', 'user:some']) {
    for (const [query, keys] of [
      ['(select id from osl.entities.node where id in (1, 5))', "('1', '5')"],
      ['(select id from osl.entities.node where id < 3)', "('1', '2')"],
      ['array(select id from osl.entities.node where id = 99)', "('99')"],
      ['(with n as (select id from node) select max(id) from n where id < 4)', "('3')"],
    ] as const)
      t.equal(await ids(who, from(query)), await ids(who, from(keys)), `${who}: ${query}`);
  }
  t.equal(
    await ids('user:all', from('(select id from node where id = $1)'), [3]),
    await ids('user:all', from("('3')")),
  );
  // A hidden row starts no walk, and what would fail on it fails nobody who may not see it.
  t.equal(
    await ids('user:some', from('(select id from node where 1 / (id - 5) < 2 and id = 1)')),
    '2@1 3@2 4@3',
  );
  for (const wrong of [
    '(select 1, 2)',
    "(select 'a')",
    '(select id from nowhere)',
    'array(select id from node union select 2.5)',
  ])
    t.match(await ids('user:all', from(wrong)), /^E051/, wrong);
  const asked = await ask('user:all', `select id from ${from('(select item.id from item)')}`, {
    explain: true,
  });
  t.match(JSON.stringify(at(asked.json, 'objects')), 'osl.entities.item');
  const counted = await ask(
    'user:all',
    `select depth, count(*) as n from ${from("('1')")} group by depth order by 1`,
  );
  t.same(
    counted.rows.map((r) => [r['depth'], r['n']]),
    [1, 2, 3, 4].map((d) => [d, '1']),
  );
});

t.test('a clipped hop is told of over REST, and refused on the wire, where nobody can be told', async (t) => {
  await system.script(generatedSql(graphScript(RING)));
  const query = "select id from TRAVERSE(anchor => 'node', target => 'node', keys => ('3'), per_hop => 1)";
  const answer = await ask('user:all', query);
  t.match(answer.json, { form: 'traverse', truncated: true, rows: [{ id: 1 }] });
  const client = await forms.wire('user:all');
  for (const { outcome } of [
    await client.simple(query),
    await client.extended(query),
    await client.simple(`copy (${query}) to stdout`),
  ])
    t.match(outcome, {
      kind: 'refused',
      code: 'E0519',
      sqlstate: '54000',
      message: /more than 1 keys \(`per_hop`\)/,
    });
  await client.simple('begin');
  await client.simple(`declare c cursor for ${query}`);
  t.match((await client.simple('fetch all from c')).outcome, { kind: 'refused', code: 'E0519' }, 'by cursor');
  await client.simple('rollback');
});

t.test('per_hop counts keys, each once, however many ways lead to it', async (t) => {
  await system.script(
    sql`truncate g.node, g.link;
     insert into g.node select n, true from generate_series(0, 90) n;
     insert into g.link select 0, n, true from generate_series(1, 60) n;
     insert into g.link select a, b, true from generate_series(1, 60) a, generate_series(61, 90) b;`,
  );
  const walk = (perHop: number): string =>
    `TRAVERSE(anchor => 'node', target => 'node', keys => ('0'), max_hops => 2, per_hop => ${perHop})`;
  const all = await ask('user:all', `select id, depth from ${walk(60)}`);
  t.match(
    { n: all.rows.length, truncated: at(all.json, 'truncated') },
    { n: 90, truncated: false },
    '1,800 links',
  );
  const counted = await ask(
    'user:all',
    `select depth, count(*) as n from ${walk(60)} group by depth order by 1`,
  );
  t.strictSame(
    counted.rows.map((r) => r['n']),
    ['60', '30'],
  );
  const client = await forms.wire('user:all');
  t.match((await client.simple(`select count(*) from ${walk(60)}`)).outcome, { kind: 'rows' });
  const few = await ask('user:all', `select id, depth from ${walk(59)}`);
  t.match({ n: few.rows.length, truncated: at(few.json, 'truncated') }, { n: 59, truncated: true });
  t.match(await ask('user:all', `select count(*) from ${walk(59)}`), { code: 'E0519' });
});

/** Of what FROM holds in the place of `$`: each is made of more than one of its rows. */
const COMPUTED: readonly string[] = [
  'select count(*) from $',
  'select max(depth) from $',
  'select depth, count(*) from $ group by depth',
  'select distinct shown from $',
  'select distinct on (shown) shown, id from $',
  'select id, row_number() over () as n from $',
  'select id from $ order by rank() over (order by id)',
  'select id from $ order by id limit 3',
  'select id from $ order by id offset 1',
  'select * from (select id from $ order by id) t limit 1',
  'select id from (select id from $ limit 2) t order by id',
  'select count(*) from (select id from $) t',
  'with t as (select id from $) select count(*) from t',
  'with t as (select id from $) select a.id from t a join t b on a.id = b.id',
  'select t.id from $ t join osl.entities.node n on n.id = t.id',
  'select n.id from osl.entities.node n left join $ t on n.id = t.id',
  'select id from osl.entities.node where id in (select id from $)',
  'select id from osl.entities.node n where not exists (select 1 from $ t where t.id = n.id)',
  'select (select count(*) from $) as n',
  'with t as (select id from $) select id from t union select id from t',
  'with t as (select id from $) select id from t union all select id from t',
  'with t as (select id from $) select id from t except select id from t',
];

/** Each row of the answer is one row of `$`. */
const PLAIN: readonly string[] = [
  'select id, depth from $',
  'select * from $ where shown',
  'select id + 1 as next, case when shown then 1 else 0 end from $',
  'select id from $ limit 2',
  'select id from $ order by id desc',
  'select t.id from (select id, depth from $) t where t.depth = 1',
  'with t as (select id from $ limit 2) select id from t',
];

t.test('nothing is computed over a clipped walk', async (t) => {
  const all = "TRAVERSE(anchor => 'node', target => 'node', keys => ('0'))";
  const few = "TRAVERSE(anchor => 'node', target => 'node', keys => ('0'), per_hop => 3)";
  await system.script(
    sql`truncate g.node, g.link;
     insert into g.node select n, true from generate_series(0, 21815) n;
     insert into g.link select 0, n, true from generate_series(1, 21815) n;`,
  );
  const client = await forms.wire('user:all');
  for (const text of COMPUTED) {
    const asked = text.replace('$', few);
    const answer = await ask('user:all', asked);
    t.match(answer, { status: 400, code: 'E0519', message: /^a hop of TRAVERSE has more than 3 keys/ }, text);
    for (const { outcome } of [await client.simple(asked), await client.extended(asked)])
      t.match(outcome, { kind: 'refused', code: 'E0519', hint: /raise per_hop, to 100000 at most/ }, text);
    const whole = await ask('user:all', text.replace('$', all));
    t.match(
      { status: whole.status, truncated: at(whole.json, 'truncated') },
      { status: 200, truncated: false },
      text,
    );
  }
  const [counted] = (await ask('user:all', `select count(*) as n from ${all}`)).rows;
  t.equal(counted?.['n'], '21815', 'and the figure is the true one, with no per_hop named');
  for (const text of PLAIN) {
    const { status, json, rows } = await ask('user:all', text.replace('$', few));
    t.match({ status, truncated: at(json, 'truncated') }, { status: 200, truncated: true }, text);
    t.ok(rows.length > 0, text);
  }
  const rows = await ask('user:all', `select id from ${all}`);
  t.match({ n: rows.rows.length, truncated: at(rows.json, 'truncated') }, { n: 1_000, truncated: true });
});

t.test('every object of a walk is in the audit record, and each hop in the plan', async (t) => {
  await system.script(generatedSql(graphScript(RING)));
  const two =
    "select id from TRAVERSE(anchor => 'node', target => 'grp', keys => ('1'), via => ('owns', 'item_grp'))";
  const { requestId, rows } = await ask('user:all', two);
  t.same(rows, [{ id: 1 }]);
  const objects = ['grp', 'item', 'node', 'owns'].map((name) => `osl.entities.${name}`);
  const records = await forms.test.records(requestId);
  t.match(
    records.find((r) => r.kind === 'decision'),
    { form: 'traverse', decision: 'allow', objects },
  );
  const explained = await ask('user:all', two, { explain: true });
  t.match(explained.json, { form: 'traverse', objects });
  const [join] = at(explained.json, 'plan', 'inputs') as readonly unknown[]; // explain's shape
  const walk = (at(join, 'inputs') as readonly unknown[]).find((i) => at(i, 'step') === 'traverse');
  t.match(walk, { step: 'traverse', detail: { path: Array, max_hops: Number, per_hop: Number } });
  t.equal(
    at(walk, 'inputs', 'length'),
    at(walk, 'detail', 'path', 'length'),
    'each hop is a governed statement',
  );
});
