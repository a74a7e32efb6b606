import { deflateRawSync } from 'node:zlib';
import { ready } from 'osl-compiler';
import { test } from 'tap';
import { playgroundExamples } from '../../site/build/playground-examples.js';
import { compileQuestion, type PlaygroundResult } from '../../site/playground/compile-question.js';
import { decodeLink, encodeLink } from '../../site/playground/share-link.js';
import { layOut, sqlTokens, yamlTokens } from '../../site/playground/sql-layout.js';
import { MOST_CHARACTERS, type Playground } from '../../site/playground/state.js';
import { ROOT } from '../tools/cli/support.js';
import { governedSql } from './playground-model.js';

await ready();
const EXAMPLES = playgroundExamples(ROOT);
const [MASKED, TENANTS] = EXAMPLES;
if (MASKED === undefined || TENANTS === undefined) throw new Error('there are no examples');
const outcomeOf = (state: Playground): PlaygroundResult['outcome'] =>
  compileQuestion(state, Date.now()).outcome;
/** Editor, code, and text at the place of the first fault. */
const refusalOf = (state: Playground): readonly unknown[] => {
  const outcome = outcomeOf(state);
  if (outcome.kind === 'compiled') return ['compiled'];
  const [fault] = outcome.faults;
  return [outcome.editor, fault?.code, fault?.range && state[outcome.editor].slice(...fault.range)];
};

test('each example compiles as the gateway compiles it, or is refused as its title says', (t) => {
  for (const example of EXAMPLES) {
    const outcome = outcomeOf(example);
    if (example.title.startsWith('Refused')) t.equal(outcome.kind, 'refused', example.title);
    else if (outcome.kind !== 'compiled') t.fail(`${example.title}: ${JSON.stringify(outcome)}`);
    else t.equal(outcome.statements.at(-1)?.sql, governedSql(example), example.title);
  }
  t.end();
});

test('masks and row filters are named with their grants', (t) => {
  const masked = outcomeOf(MASKED);
  if (masked.kind !== 'compiled') throw new Error('it is refused');
  t.strictSame(
    masked.masked.map(({ column, label, mask, grants, partly }) => [column, label, mask, grants, partly]),
    [
      ['person.born', 'birth', 'year', ['roles.analyst.grants[0]'], false],
      ['person.email', 'contact', 'redact', ['roles.analyst.grants[0]'], false],
      ['person.name', 'name', 'partial', ['roles.analyst.grants[0]'], false],
    ],
  );
  const tenants = outcomeOf(TENANTS);
  t.match(tenants, {
    restrictions: [
      { grant: 'roles.member.grants[0]', entity: 'project', rows: "account = attribute('account')" },
      { grant: 'roles.member.grants[1]', entity: 'task', rows: "account = attribute('account')" },
    ],
    statements: [{ parameters: [{ type: 'text', from: 'attribute account of user:ann: north' }] }],
  });
  t.end();
});

test('faults name their text, code and place', (t) => {
  const state: Playground = MASKED;
  const manifest = state.manifest.replace('type: int4', 'type: int5');
  const policy = state.policy.replace('ceiling: [support]', 'ceiling: [suport]');
  const rows: readonly (readonly [Playground, readonly unknown[]])[] = [
    [{ ...state, question: 'select id, emial from person' }, ['question', 'E0512', 'emial']],
    [{ ...state, question: "select id from person where iban = ''" }, ['question', 'E2101', 'iban']],
    [{ ...state, question: 'select from where' }, ['question', 'E0511', 'where']],
    [{ ...state, chain: ['user:nobody'] }, ['question', 'E2102', null]],
    [{ ...state, roles: [] }, ['question', 'E2102', null]],
    [{ ...state, manifest }, ['manifest', 'M2004', 'int5']],
    [{ ...state, manifest: 'a: [' }, ['manifest', 'M0003', '']],
    [{ ...state, policy }, ['policy', 'P0101', 'suport']],
    [{ ...state, policy: 'x'.repeat(MOST_CHARACTERS + 1) }, ['policy', 'E0511', null]],
  ];
  for (const [input, refusal] of rows) t.strictSame(refusalOf(input), refusal);
  t.end();
});

test('a link holds the whole state, and anything else is none', async (t) => {
  const state: Playground = { ...MASKED, question: 'select \u{1f600} "</script>\'', roles: ['analyst'] };
  const link = (await encodeLink(state)) ?? '';
  const { question, manifest, policy, chain, roles } = state;
  t.strictSame(await decodeLink(link), { question, manifest, policy, chain, roles });
  const noise = Array.from({ length: 60_000 }, (_, i) => ((i * 2_654_435_761) >>> 0).toString(36)).join('');
  t.equal(await encodeLink({ ...state, policy: noise.slice(0, MOST_CHARACTERS) }), null, 'too long');
  const packed = (value: unknown): string =>
    `#p1=${deflateRawSync(JSON.stringify(value)).toString('base64url')}`;
  t.ok(await decodeLink(packed(['', '', '', [], null])));
  for (const broken of [
    '',
    '#what-this-is',
    '#p1=',
    '#p1=%%%',
    link.slice(0, -9),
    packed({ question }),
    packed(['', '', '', [1], null]),
    packed(['', '', '', 'user:ana', null]),
    packed(['', '', { toString: 1 }, [], null]),
    packed([' '.repeat(20_000_000), '', '', [], null]),
  ])
    t.equal(await decodeLink(broken), null, broken.slice(0, 40));
});

test('colours and layout change no token', (t) => {
  const joined = (tokens: readonly { readonly text: string }[]) => tokens.map(({ text }) => text).join('');
  const sql = `select 'a''b', E'\\'c', "from"" ", $1 -- d\n/* e */ from (select 1) as t where x and ( y or z )`;
  t.equal(joined(sqlTokens(sql)), sql);
  for (const { manifest, policy, ...example } of EXAMPLES) {
    t.equal(joined(yamlTokens(manifest)), manifest);
    t.equal(joined(yamlTokens(policy)), policy);
    const outcome = outcomeOf({ manifest, policy, ...example });
    if (outcome.kind === 'refused') continue;
    for (const statement of outcome.statements) {
      const tokens = (text: string) => sqlTokens(text).filter(({ text: token }) => token.trim() !== '');
      t.strictSame(tokens(joined(layOut(statement.sql))), tokens(statement.sql), example.title);
    }
  }
  t.end();
});
