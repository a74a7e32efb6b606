import { test } from 'tap';
import {
  formatDiagnostics,
  ManifestProblems,
  parseFragment,
  parseManifest,
  parsePolicyDocument,
  pointer,
} from '../../../src/model/manifest/index.js';
import { edited, line, MANIFEST, ofManifest, ofPolicy, POLICY } from './base.js';
import { brokenManifest, MANIFEST_CASES, POLICY_CASES } from './cases.js';

test('a diagnostic shows file, line, caret and hint', async (t) => {
  try {
    parseManifest(edited(MANIFEST, 'table: sales.customers', 'table: sales.custmers'), 'shop/manifest.yaml');
    t.fail('it has a problem');
  } catch (error) {
    t.equal(
      error instanceof ManifestProblems && error.format(),
      [
        'shop/manifest.yaml:29:37: error M2001 table `sales.custmers` is not declared',
        '   29 |     source: { connector: db, table: sales.custmers }',
        '      |                                     ^^^^^^^^^^^^^^',
        '  hint: perhaps you meant `sales.customers`',
      ].join('\n'),
    );
  }
});

test('a long line is shown around its problem', async (t) => {
  try {
    parseManifest(
      `version: 1\nlexicon: { ${Array.from({ length: 200 }, (_, i) => `t${i}: {refers_to: x}`).join(', ')}, t: 1 }\n`,
      'm',
    );
  } catch (error) {
    const shown = error instanceof ManifestProblems ? error.format().split('\n') : [];
    t.ok(shown.every((l) => l.length < 200));
    const [source, caret] = shown.slice(-3);
    t.equal(source?.charAt(caret?.indexOf('^') ?? -1), '1');
  }
});

test('paths are JSON Pointers', async (t) => {
  t.equal(pointer(['tables', 'sales.orders', 'a/b~c', 0]), '/tables/sales.orders/a~1b~0c/0');
});

/** A predicate as its author wrote it, and the column where its word `wrong` stands. */
const PREDICATES: readonly (readonly [name: string, yaml: string, at: string])[] = [
  ['plain', 'rows: a = wrong', '9:19-24'],
  ['double quotes', 'rows: "a = wrong"', '9:20-25'],
  ['single quotes with a quote inside', "rows: 'a = ''x'' and wrong'", '9:30-35'],
  ['a block', 'rows: |\n          a = 1\n          and wrong', '11:15-20'],
  ['a folded block', 'rows: >-\n          a = 1\n          and wrong', '11:15-20'],
  ['a plain scalar over two lines', 'rows: a = 1\n          and wrong', '10:15-20'],
];

test('a problem inside a predicate is marked at its word', async (t) => {
  for (const [name, yaml, at] of PREDICATES) {
    const text = edited(
      POLICY,
      '- { on: order, columns: "*", rows: amount > 0 }',
      `- on: order\n        ${yaml}\n        columns: "*"`,
    );
    const file = parsePolicyDocument(text, 'p.yaml');
    const rows = file.document.roles['r']?.grants[0]?.rows ?? '';
    const problem = {
      code: 'P0105',
      message: 'no',
      hint: null,
      path: ['roles', 'r', 'grants', 0, 'rows'],
      offset: rows.indexOf('wrong'),
    };
    t.strictSame(file.diagnostics([problem]).map(line), [`${at} P0105 no`], name);
  }
});

test('later problems without an offset mark the whole value, in file order', async (t) => {
  const file = parsePolicyDocument(POLICY, 'p.yaml');
  const at = (path: readonly (string | number)[]) => ({
    code: 'P',
    message: 'no',
    hint: 'yes',
    path,
    offset: null,
  });
  const list = file.diagnostics([
    at(['masks', 'pii']),
    at(['roles', 'r', 'grants', 0, 'rows']),
    at(['roles', 'r', 'nothing', 'there']),
  ]);
  t.strictSame(list.map(line), ['6:3-4 P no (yes)', '8:42-52 P no (yes)', '9:15-21 P no (yes)']);
  t.match(formatDiagnostics(list, file.text), /p\.yaml:8:42: error P no\n {4}8 \|/);
});

test('a key is the text that is written, not the number that YAML reads', async (t) => {
  const keys = ['007', '110169484474386276334', '1e3', '0x1F', '1.50', '~', 'True'];
  for (const key of keys) {
    const text = edited(POLICY, 'user:a:', `${key}:`);
    t.strictSame(Object.keys(parsePolicyDocument(text, 'p.yaml').document.subjects), [key]);
    const broken = ofPolicy(edited(text, 'region: eu', 'region: ~'));
    t.match(broken, [/^4:\d+-\d+ M1001 `region` must be text/], `${key}: the place below it is found`);
  }
  t.match(ofPolicy(edited(POLICY, 'user:a:', '007: { ceiling: [] }\n  "007":')), [
    /M0004 `007` is given twice/,
  ]);
});

test('a good manifest and a good policy have no diagnostics', async (t) => {
  t.strictSame(ofManifest(MANIFEST), []);
  t.strictSame(ofPolicy(POLICY), []);
});

test('manifest', async (t) => {
  for (const broken of MANIFEST_CASES)
    t.strictSame(ofManifest(brokenManifest(broken)), broken.told, broken.name);
});

test('policy', async (t) => {
  for (const c of POLICY_CASES) t.strictSame(ofPolicy(edited(POLICY, c.from, c.to)), c.told, c.name);
});

test('a fragment adds rerankers and rollups to those of the manifest', async (t) => {
  const reranker = '{ protocol: tei, url_env: RERANK_URL, model: m }';
  const rollup = '{ entity: order, dimensions: [customer_id], max_age: 60 }';
  const text = `${edited(MANIFEST, 'max_top_k: 50', 'max_top_k: 50, rerankers: [a]')}rerankers: { a: ${reranker} }\nrollups: { a: ${rollup} }\n`;
  const { document } = parseManifest(text, 'm.yaml');
  const { rerankers, rollups } = parseFragment(
    `rerankers: { b: ${reranker} }\nrollups: { b: ${rollup} }\n`,
    'f.yaml',
    document,
  );
  t.strictSame(
    [[...rerankers.keys()], [...rollups.keys()]],
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
  );
});
