import { parseSync } from 'libpg-query';
import { applyGrammar, innerQuery, prepareText, QueryError, ready } from 'osl-compiler';
import t from 'tap';
import { diceFrom } from '../../proof/oracle/dice.js';
import { processorMs } from '../../support/processor.js';

/** Comments become white space before the grammar reads a text: the tree, and every place in it, stays what it is. */

const RUNS = Number(process.env['OSL_COMMENT_RUNS'] ?? 2_000);
const PARTS = [
  ...[
    "'a'",
    "E'b\\'c'",
    "e'x\\\\'",
    "U&'d'",
    "b'1'",
    "'/*'",
    "'--'",
    '"q--"',
    '"/*"',
    '$$--$$',
    '$t$/*$t$',
    "'",
  ],
  ...[' ', '\n', '\t', '--c\n', '--\r', "--'\n", '/*x*/', '/**/', '/* /* n */ */', "/*'*/", '/*é*/', '/*'],
  ...[
    '1',
    '+',
    '-',
    '*',
    '/',
    'select',
    'from',
    'a',
    '$1',
    '(',
    ')',
    ',',
    'é',
    '::text',
    ';',
    ' as ',
    'e',
    'U&',
  ],
];

await ready();

const told = (parse: () => unknown): string => {
  try {
    return JSON.stringify(parse());
  } catch (error) {
    return `fault ${error instanceof QueryError}`;
  }
};

t.test('a text with comments has the tree that it has with them', async (t) => {
  let trees = 0;
  for (let seed = 1; seed <= RUNS; seed++) {
    const dice = diceFrom(seed);
    const text = `select ${Array.from({ length: 1 + (seed % 9) }, () => dice.of(PARTS)).join('')}`;
    const plain = told(() => parseSync(text).stmts ?? []);
    const looked = told(() => {
      const { parsed } = prepareText(text);
      t.equal(Buffer.byteLength(parsed), Buffer.byteLength(text), JSON.stringify(text));
      const grammar = applyGrammar(parsed);
      if (grammar.kind !== 'statements') throw new Error(grammar.kind);
      return grammar.statements;
    });
    if (plain.startsWith('[')) trees++;
    // The library refuses a line comment between two parts of a string, which Postgres takes.
    if (plain.startsWith('fault') && (looked.startsWith('fault') || text.includes('--'))) continue;
    t.equal(looked, plain, JSON.stringify(text));
  }
  t.ok(trees > RUNS / 50, `${trees} of them are statements`);
});

/** UTF-16 units, for which the grammar's own scanner takes some seconds. */
const LENGTH = 120_000;

t.test('what the grammar would go through again and again is read at once', async (t) => {
  for (const run of ['/**/', '/*/**/*/', '--\n', '/*-*/', `${'/*'.repeat(60)}${'*/'.repeat(60)}`]) {
    const text = `select 1 ${run.repeat(LENGTH / run.length)}`;
    const { parsed } = prepareText(text);
    t.notMatch(parsed, /\/\*|--/, JSON.stringify(run.slice(0, 8)));
    const before = processorMs();
    t.equal(applyGrammar(parsed).kind, 'statements');
    const ms = processorMs() - before;
    t.ok(ms < 500, `${ms.toFixed(0)} ms`);
  }
});

t.test('nothing before the query of a statement remains in it', async (t) => {
  for (const text of [
    'explain /* coût\u00a0: élevé */ select 1',
    'explain (verbose) -- a\u2028b\n select 1',
    'declare "a\u00a0b" cursor for select 1',
    'prepare "p\ufeffq" as select 1',
    '/* a\u3000b */ copy (select 1) to stdout',
  ]) {
    const inner = innerQuery(text) ?? '';
    t.equal(inner.trim(), 'select 1', encodeURI(text));
    t.equal(inner.indexOf('select'), text.indexOf('select'), 'at its place');
    t.equal(applyGrammar(inner).kind, 'statements');
  }
});
