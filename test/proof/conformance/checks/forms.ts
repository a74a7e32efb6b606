import { generatedSql } from '../../../../src/base/sql.js';
import { storeTable } from '../../../../src/model/facets/store-names.js';
import { at, authors, type Check, LETTERS, listAt, reviews } from './check.js';

const OPERATORS = new Set(['select', 'union', 'scan', 'retrieve', 'traverse', 'hydrate', 'join']);

/** The names of all steps of an explained plan. */
function stepsOf(plan: unknown): readonly string[] {
  const below = at(plan, 'steps') === undefined ? [] : listAt(plan, 'steps');
  return [String(at(plan, 'step')), ...below.flatMap(stepsOf)];
}

export const FORM_CHECKS = {
  'graph.7': async (t, world) => {
    const { body } = await world.get('user:ann', '/osl/domain-map?governed=true');
    const book = listAt(body, 'nodes').find((node) => at(node, 'id') === 'entity:book');
    t.match(
      listAt(book, 'attributes').find((a) => at(a, 'name') === 'topic'),
      { role: 'derived' },
    );
    // Books 7 to 12 have no content that it could come from.
    const text = 'select id, topic from osl.entities.book where id in (1, 2, 9) order by id';
    const topics = (await world.osql('user:ann', text)).rows.map((r) => r['topic']);
    t.match(topics, [/^(?:whales|stars)$/, /^(?:whales|stars)$/, null]);
    const without = 'select topic from book';
    t.match(await world.osql('user:ann', without), { status: 400, code: 'E0511' }, 'of named records only');
    const few = await world.osql('user:few', 'select topic from book where id in (1)');
    t.match(few, { status: 400, code: 'E0512' }, 'who has no grant of the content has no value from it');
  },
  'graph.9': async (t, world) => {
    const path = '/osl/domain-map?governed=true';
    const first = await world.get('user:ann', path);
    const again = await world.get('user:ann', path);
    const elsewhere = await (await world.plain()).get('user:ann', path);
    t.equal(first.status, 200);
    t.equal(again.text, first.text);
    t.equal(elsewhere.text, first.text, 'another service of the same manifest');
  },
  'osql.2': async (t, world) => {
    const form = (text: string) => world.osql('user:ann', text, { explain: true });
    for (const text of [
      'select region, count(*) from book where pages > 100 group by region',
      'select id from book union select id from author',
      `select text from ${reviews()}`,
      `select id from ${authors("('1')")}`,
      'select id, evidence from book where id in (1)',
      `select b.id from book b join ${reviews()} r on b.id = r.book_id`,
    ]) {
      const { body } = await form(text);
      const strange = stepsOf(body['plan']).filter((step) => !OPERATORS.has(step));
      t.same(strange, [], text);
    }
    const broken = await form('select id from book where');
    t.match(broken, { status: 400, code: 'E0511', body: { position: { line: 1 } } });
  },
  'osql.3.3': async (t, world) => {
    const { body } = await world.get('user:ann', '/osl/schema?governed=true');
    const facet = listAt(body, 'facets').find((f) => at(f, 'name') === 'reviews');
    t.type(at(facet, 'embedding_model') ?? at(facet, 'retrieval', 'embedding_model'), 'string');
    const best = async (query: string) => {
      const call = `RETRIEVE(facet => 'reviews', query => '${query}', top_k => 3)`;
      return (await world.osql('user:ann', `select text from ${call}`)).rows.map((r) => String(r['text']));
    };
    t.ok((await best('whales')).every((text) => text.includes('whales')));
    t.ok((await best('stars')).every((text) => text.includes('stars')));
    for (const query of ["''", "'  '", 'null', '5', '(select title from book limit 1)', 'title']) {
      const call = `RETRIEVE(facet => 'reviews', query => ${query}, top_k => 3)`;
      t.match(
        await world.osql('user:ann', `select text from ${call}`),
        { status: 400, code: /^E051[12]$/ },
        call,
      );
    }
  },
  'osql.3.5': async (t, world) => {
    const languages = async (who: string, where: string, topK: number) =>
      (await world.osql(who, `select lang, book_id from ${reviews(topK)} ${where}`)).rows;
    // A third of the reviews is German: had the best two been taken first, fewer would be left of them.
    const german = await languages('user:ann', "where lang = 'de'", 2);
    t.same(
      german.map((r) => r['lang']),
      ['de', 'de'],
    );
    const eu = await world.osql('user:eu', `select lang, book_id from ${reviews(6)}`);
    t.equal(eu.rows.length, 6, 'as many as there are, though half of the best are hidden');
    world.withheld(t, eu, /"book_id":"[246]"/);
    const by = `select text from ${reviews()} where reviewer = 'Ira Critic'`;
    t.match(await world.osql('user:ann', by), { status: 400, code: 'E0511' }, 'no field that is not indexed');
  },
  'osql.3.7': async (t, world) => {
    const { system } = world.rest.test.engine;
    const [raw, masked] = [storeTable('reviews', 'raw'), storeTable('reviews', 'masked')];
    const rows = async (who: string) => (await world.osql(who, `select reviewer from ${reviews(1)}`)).rows;
    const without = async (store: string, act: () => Promise<unknown>) => {
      await system.script(generatedSql(`alter table osl_content."${store}" rename to away`));
      await act();
      await system.script(generatedSql(`alter table osl_content.away rename to "${store}"`));
    };
    await without(raw, async () => t.same(await rows('user:ann'), [{ reviewer: '[redacted]' }]));
    await without(masked, async () => t.same(await rows('user:ada'), [{ reviewer: 'Ira Critic' }]));
    await without(masked, async () => t.same(await rows('user:ann'), [], 'nor does another stand in for it'));
  },
  'osql.3.10': async (t, world) => {
    const ids = async (keys: string) =>
      (await world.osql('user:ann', `select id from ${authors(keys)} order by id`)).rows.map((r) => r['id']);
    t.same(await ids("('1')"), [1, 2]);
    t.same(await ids("('2')"), [2]);
    t.same(await ids("('4')"), [], 'a book that nobody wrote');
    for (const [osql, code] of [
      [`select title from ${authors("('1')")}`, 'E0512'], // the anchor's columns are not there
      [`select a.id from book b, lateral ${authors('(b.id)')} a`, 'E0511'],
      [`select a.id from ${authors('(b.id)')} a, book b`, 'E0512'], // nor what stands beside it
      [`select a.id from ${authors("('1')")} a join author b on a.name = b.name`, 'E0514'],
      [`select a.id from ${authors("('1')")} a join ${authors("('2')")} b on a.id = b.id`, 'E0511'],
      [`select id from ${authors("('x')")}`, 'E0511'],
      [`select id from ${authors("('1')", ", on => 'pages > 1'")}`, 'E0511'],
    ] as const)
      t.match(await world.osql('user:ann', osql), { status: 400, code }, osql);
  },
  'osql.3.20': async (t, world) => {
    const join = (entity: string, facet: string, on: string) =>
      `select x.${on.split(' ')[0]} from ${entity} x join ${facet} r on x.${on.replace('= ', '= r.')}`;
    const eu = await world.osql('user:eu', join('book', reviews(20), 'id = book_id'));
    t.equal(eu.rows.length, 6);
    t.ok(eu.rows.every((r) => Number(r['id']) % 2 === 1));
    const quoted = await world.osql('user:key', join('member', LETTERS, 'code = member'));
    t.same(quoted.rows, [{ code: "m-1'; --" }], 'keys are values, whatever they hold');
    t.match(await world.osql('user:ann', join('member', LETTERS, 'code = member')), {
      status: 403,
      code: 'E0515',
    });
  },
} satisfies Readonly<Record<string, Check>>;
