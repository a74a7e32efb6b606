import { freshAddress } from '../../../surfaces/rest/fixture.js';
import { at, type Check, FIVE_FORMS, listAt } from './check.js';

const TOOLS = ['semantic_query', 'semantic_explain', 'semantic_schema'] as const;
const OWNER = { osql: 'select owner from book where id = 1' };

/** What an answer says, without what is of its one request. */
function without({ request_id: _, isError: __, ...content }: Readonly<Record<string, unknown>>): object {
  return content;
}

export const MCP_CHECKS = {
  'mcp.1': async (t, world) => {
    t.same((await world.mcp('user:ada', 'semantic_query', OWNER)).rows, [{ owner: 'Owner Quux 1' }]);
    world.withheld(t, await world.mcp('user:ann', 'semantic_query', OWNER), /Quux/);
    const regional = await world.mcp('user:eu', 'semantic_query', {
      osql: 'select id from book where id < 4',
    });
    t.same(regional.rows, [{ id: 1 }, { id: 3 }], 'the rows of the caller, and not of the runner');
    const claimed = { 'x-osl-subject': 'user:ada', 'x-actor-roles': 'clear' };
    const other = await world.mcp('user:ann', 'semantic_query', OWNER, claimed);
    world.withheld(t, other, /Quux/);
    t.match(await world.rest.trail(String(other.body['request_id'])), [{ subject: 'user:ann' }, {}]);
    const from = freshAddress();
    for (const [authorization, code] of [
      ['', 'E2102'],
      ['Bearer broken', 'E3001'],
    ] as const) {
      const headers = authorization === '' ? {} : { authorization };
      t.match(await world.mcp('', 'semantic_query', OWNER, headers, from), { status: 401, code, rows: [] });
    }
  },
  'mcp.semantic_query': async (t, world) => {
    for (const osql of FIVE_FORMS) {
      const plain = (await world.osql('user:ann', osql)).body;
      const called = await world.mcp('user:ann', 'semantic_query', { osql });
      t.same([called.body['form'], called.rows], [plain['form'], plain['rows']], osql);
      t.ok(called.rows.length > 0, osql);
    }
    const doubled = `select id from book union ${FIVE_FORMS[1]}`;
    t.match(await world.mcp('user:ann', 'semantic_query', { osql: doubled }), { status: 400, code: 'E0511' });
  },
  'mcp.semantic_explain': async (t, world) => {
    for (const osql of FIVE_FORMS) {
      const plain = (await world.osql('user:ann', osql, { explain: true })).body;
      const called = await world.mcp('user:ann', 'semantic_explain', { osql });
      t.same([called.body['form'], called.body['plan']], [plain['form'], plain['plan']], osql);
      t.notOk('rows' in called.body || /Book 1|A review/.test(called.text), 'free of data');
    }
    const nowhere = await world.mcp('user:ann', 'semantic_explain', { osql: 'select id from nowhere' });
    t.match(nowhere, { status: 400, code: 'E0512' });
  },
  'mcp.semantic_schema': async (t, world) => {
    for (const subject of ['user:ann', 'user:few']) {
      const plain = await world.get(subject, '/osl/schema?governed=true&index=true');
      const called = await world.mcp(subject, 'semantic_schema', {});
      t.same(at(called.body, 'schema', 'objects'), plain.body['objects'], subject);
      const book = await world.mcp(subject, 'semantic_schema', { names: ['book'] });
      const whole = await world.get(subject, '/osl/schema?governed=true&names=book');
      t.same(at(book.body, 'schema', 'entities'), whole.body['entities'], subject);
    }
    const hidden = await world.mcp('user:few', 'semantic_schema', { names: ['author'] });
    t.match(hidden, { status: 400, code: 'E0512' });
  },
  'mcp.2': async (t, world) => {
    const answered = await world.mcp('user:ann', 'semantic_query', {
      osql: 'select id from book where id = 99',
    });
    t.match(answered, { rows: [], body: { isError: false, row_count: 0 } }, 'an empty answer is none');
    for (const [osql, status, code] of [
      ['select id from nowhere', 400, 'E0512'],
      ['select shelf from book', 403, 'E2101'],
      ["select id from TRAVERSE(anchor => 'book', target => 'member', keys => ('1'))", 422, 'E1001'],
      ["select text from RETRIEVE(facet => 'nowhere', query => 'x', top_k => 1)", 400, 'E0241'],
    ] as const) {
      const plain = await world.osql('user:ann', osql);
      const called = await world.mcp('user:ann', 'semantic_query', { osql });
      t.match(called, { status, code, body: { isError: true, status } }, osql);
      t.notOk('rows' in called.body, osql);
      const envelope = (problem: unknown) => without(problem as Readonly<Record<string, unknown>>);
      t.same(envelope(called.body['problem']), envelope(plain.body), 'the envelope is that of REST');
    }
    for (const tool of TOOLS) {
      const args = tool === 'semantic_schema' ? {} : { osql: 'select id from book' };
      const refused = await world.mcp('user:nil', tool, args);
      t.match(refused, { status: 403, code: 'E2102', body: { isError: true } }, tool);
      const ended = await world.mcp('', tool, args, { authorization: 'Bearer broken' }, freshAddress());
      t.match(ended, { status: 401, code: 'E3001' }, tool);
    }
  },
  'mcp.4': async (t, world) => {
    const listed = await world.mcpTools('user:ann');
    t.same(
      listAt(listed.body, 'tools').map((tool) => at(tool, 'name')),
      TOOLS,
    );
    for (const tool of ['metric_lookup', 'doc_search', 'entity_get', 'schema_describe', 'joint_explore']) {
      const called = await world.mcp('user:ann', tool, {});
      t.match(called, { code: '-32602', rows: [] }, tool);
    }
  },
} satisfies Readonly<Record<string, Check>>;
