import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'libpg-query';
import { QueryError } from 'osl-compiler';
import t from 'tap';
import { type Forms, startForms } from '../language/forms/fixture.js';
import { memberAt } from '../support/frontends.js';
import { SHOP_MANIFEST } from '../support/shop.js';
import { bindStatement } from './osl-sql/bind.js';
import { partsOf, readGrammar } from './osl-sql/grammar.js';
import { NOT_OF_THE_GRAMMAR, OF_OTHER_STATEMENTS, SELECT_KINDS, SELECT_NODES } from './osl-sql/nodes.js';
import { type Example, examplesOf, rewritten } from './osl-sql/page.js';

t.setTimeout(600_000);

const PAGE = join(process.cwd(), 'docs', 'osl-sql.md');
const page = readFileSync(PAGE, 'utf8');
const examples = examplesOf(page);
const grammar = readGrammar();

/** Rows that an example shows; of more, their number is said. */
const SHOWN = 4;

/** Returns the outcome of `sql`: its rows, or its refusal. */
async function outcomeOf(sql: string, forms: Forms): Promise<readonly string[]> {
  const given = /^-- parameters: (.*)$/m.exec(sql)?.[1]?.split(', ');
  const more = given === undefined ? {} : { parameters: given };
  const { code, message, rows, json } = await forms.ask('user:ann', sql, more);
  if (code !== '') return [`${code} ${message}`];
  const names = (memberAt(json, 'columns') as readonly { readonly name: string }[]).map((c) => c.name); // REST says so
  const cell = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const lines = rows.slice(0, SHOWN).map((row) => names.map((n) => cell(row[n] ?? null)).join(' | '));
  if (rows.length === 0) return ['no rows'];
  return rows.length > SHOWN ? [...lines, `… ${rows.length} rows`] : lines;
}

function isRefusal({ outcome }: Example): boolean {
  return /^E\d{4} /.test(outcome[0] ?? '');
}

/** Contents of the examples: parts of those that are answered, and of those that are refused. */
function partsOfExamples(all: readonly Example[]): { answered: Set<string>; refused: Set<string> } {
  const found = { answered: new Set<string>(), refused: new Set<string>() };
  for (const example of all) {
    const into = isRefusal(example) ? found.refused : found.answered;
    for (const tree of treesOf(example.sql)) for (const part of partsOf(tree, grammar)) into.add(part);
  }
  return found;
}

/** The grammar's trees of `sql`; none where it is no SQL, or where only OSL-SQL has the word. */
function treesOf(sql: string): readonly unknown[] {
  try {
    return (parseSync(sql).stmts ?? []).map((s) => s.stmt);
  } catch {
    return [];
  }
}

function statusOf(part: string, { answered, refused }: ReturnType<typeof partsOfExamples>): string {
  return answered.has(part) ? 'answered' : refused.has(part) ? 'refused' : 'without an example';
}

/** The tables at the end of the page. */
function tablesOf(all: readonly Example[]): string {
  const parts = partsOfExamples(all);
  const nodes = [...SELECT_NODES].map(
    ([name, what]) => `| \`${name}\` | ${statusOf(name, parts)} | ${what} |`,
  );
  const kinds = kindsOfSelect().map(([name, values]) => {
    const by = (status: string): string =>
      values
        .filter((v) => statusOf(`${name}.${v}`, parts) === status)
        .map((v) => `\`${v}\``)
        .join(', ');
    return `| \`${name}\` | ${by('answered')} | ${by('refused')} |`;
  });
  return `| --- | --- | --- |
${nodes.join('\n')}

The values of the enumerations in this tree:

| enumeration | answered | refused |
| --- | --- | --- |
${kinds.join('\n')}
`;
}

function kindsOfSelect(): readonly (readonly [name: string, values: readonly string[]])[] {
  return [...SELECT_KINDS].map(([name, without]) => [
    name,
    (grammar.kinds.get(name) ?? []).filter((v) => !without.has(v)),
  ]);
}

t.test('every example of docs/osl-sql.md comes to what the page says', async (t) => {
  const declared = await startForms({});
  t.teardown(() => declared.close());
  const any = await startForms({ manifest: `${SHOP_MANIFEST}features: { joins: any }\n` });
  t.teardown(() => any.close());
  const outcomes: (readonly string[])[] = [];
  for (const { sql, outcome } of examples) {
    const actual = await outcomeOf(sql, /^-- joins: any$/m.test(sql) ? any : declared);
    outcomes.push(actual);
    if (process.env['OSL_WRITE_DOCS'] !== '1') t.same(actual, outcome, sql);
  }
  if (process.env['OSL_WRITE_DOCS'] === '1') {
    const actual = examples.map(({ sql }, i) => ({ sql, outcome: outcomes[i] ?? [] }));
    writeFileSync(PAGE, rewritten(page, outcomes, tablesOf(actual)));
  }
  t.ok(examples.length > 250, `${examples.length} examples`);
});

t.test('every part of the grammar that a SELECT may have is in an example, and in the table', async (t) => {
  const parts = partsOfExamples(examples);
  for (const name of grammar.nodes) {
    const homes = [SELECT_NODES, NOT_OF_THE_GRAMMAR, OF_OTHER_STATEMENTS].filter((s) => s.has(name)).length;
    t.equal(homes + (/Stmt$/.test(name) && name !== 'SelectStmt' ? 1 : 0), 1, `${name} has one place`);
  }
  for (const name of SELECT_NODES.keys()) t.not(statusOf(name, parts), 'without an example', name);
  for (const [name, values] of kindsOfSelect()) {
    t.ok(values.length > 1, `${name} is an enumeration`);
    for (const v of values) t.not(statusOf(`${name}.${v}`, parts), 'without an example', `${name}.${v}`);
  }
  const unknown = [...parts.answered, ...parts.refused].filter(
    (p) => !p.includes('.') && !SELECT_NODES.has(p) && !OF_OTHER_STATEMENTS.has(p) && !/Stmt$/.test(p),
  );
  t.same(unknown, [], 'no tree has a part that the lists leave out');
  t.equal(
    page,
    rewritten(
      page,
      examples.map((e) => e.outcome),
      tablesOf(examples),
    ),
    'the tables are current: OSL_WRITE_DOCS=1 writes them',
  );
});

t.test('every other kind of statement is refused', async (t) => {
  const statements = [...grammar.nodes].filter(
    (n) => /Stmt$/.test(n) && n !== 'SelectStmt' && n !== 'RawStmt',
  );
  t.ok(statements.length > 100, `${statements.length} kinds`);
  for (const name of statements) {
    const refusal = t.throws(() => bindStatement(name), QueryError, name);
    if (refusal instanceof QueryError) t.equal(refusal.code, 'E0511', name);
  }
});
