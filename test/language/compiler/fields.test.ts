import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALL_FEATURES, parse, QueryError, ready } from 'osl-compiler';
import t from 'tap';
import type * as Bind from '../../../compiler/src/bind/index.js';
import { readGrammar } from '../../docs/osl-sql/grammar.js';
import { SELECT_NODES } from '../../docs/osl-sql/nodes.js';
import { examplesOf } from '../../docs/osl-sql/page.js';
import { parseCases } from '../../proof/golden/cases.js';
import { CATALOG } from '../../proof/golden/catalog.js';
import { CASES, caseFiles } from '../../proof/golden/files.js';
import { callerNamed } from '../../proof/golden/outcome.js';
import { NEVER_IN_A_QUESTION, PLACES, SAYS_NOTHING, TEXTS } from './fields/texts.js';
import { watched } from './fields/watched.js';

/**
 * Nothing that a caller writes is passed over in silence: in every statement that binds, every field that the parser
 * has filled in was looked at; all other statements are refused.
 */

await ready();

// The compiler's package exports no stage by itself: loaded by path, as tsc built it.
const compiled: unknown = await import(
  new URL('../../../../compiler/dist/bind/index.js', import.meta.url).href
);
const { bind } = compiled as typeof Bind;
const grammar = readGrammar();
const typeOf = (type: string, field: string): string | undefined => grammar.fields.get(type)?.get(field);

interface Question {
  readonly sql: string;
  readonly caller: string;
  readonly world: 'semantic' | 'physical';
}

const page = readFileSync(join(process.cwd(), 'docs', 'osl-sql.md'), 'utf8');
const QUESTIONS: readonly Question[] = [
  ...TEXTS.map((sql) => ({ sql, caller: 'owner', world: 'semantic' as const })),
  ...examplesOf(page).map(({ sql }) => ({ sql, caller: 'owner', world: 'semantic' as const })),
  ...caseFiles()
    .flatMap((file) => parseCases(readFileSync(new URL(file, CASES), 'utf8')))
    .filter((c) => !c.query.startsWith('{'))
    .map(({ query, caller, world }) => {
      return {
        sql: query,
        caller,
        world: world === 'physical' ? ('physical' as const) : ('semantic' as const),
      };
    }),
];

/** Returns the fields that the binder passes over in `question`; null if it refuses it, or if it does not parse. */
function passedOver({ sql, caller, world }: Question): readonly string[] | null {
  try {
    const { source, node, lists } = parse(sql);
    const { tree, unread, passedOver: neverAsked } = watched(node, typeOf);
    bind({ source, node: tree, lists }, CATALOG, callerNamed(caller).access, ALL_FEATURES, [], world);
    const found = unread()
      .filter(({ field }) => !PLACES.test(field))
      .filter(({ field, value }) => SAYS_NOTHING.get(field)?.test(JSON.stringify(value)) !== true)
      .map(({ field, value }) => `${field} = ${JSON.stringify(value)}`);
    // That it is not there is what ONLY says.
    return neverAsked('RangeVar', 'inh') ? [...found, 'RangeVar.inh'] : found;
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}

/** Every field that a tree has, as `Type.field`. */
function fieldsOf(sql: string): readonly string[] {
  const found: string[] = [];
  const visit = (value: unknown, type: string): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, type);
    else if (typeof value === 'object' && value !== null)
      for (const [field, inner] of Object.entries(value)) {
        if (type !== 'Node') found.push(`${type}.${field}`);
        const of = type === 'Node' ? field : typeOf(type, field);
        if (of !== undefined) visit(inner, of);
      }
  };
  try {
    visit(parse(sql).node, 'Node');
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
  }
  return found;
}

t.test('what is bound was read, field by field', async (t) => {
  let bound = 0;
  for (const question of QUESTIONS) {
    const found = passedOver(question);
    if (found !== null) bound++;
    if (found !== null && found.length > 0) t.fail(`${question.sql}: nobody looked at ${found.join(', ')}`);
  }
  t.ok(bound > 400 && QUESTIONS.length - bound > 300, `${bound} of ${QUESTIONS.length} are bound`);
});

t.test('the questions have every field of every node that is ever bound', async (t) => {
  const met = new Set(QUESTIONS.flatMap(({ sql }) => fieldsOf(sql)));
  const bound = new Set(
    QUESTIONS.filter((q) => passedOver(q) !== null).flatMap(({ sql }) =>
      fieldsOf(sql).map((field) => field.split('.')[0] ?? ''),
    ),
  );
  const fields = [...SELECT_NODES.keys()]
    .filter((type) => bound.has(type))
    .flatMap((type) => [...(grammar.fields.get(type)?.keys() ?? [])].map((field) => `${type}.${field}`));
  t.ok(bound.size > 30 && fields.length > 150, `${fields.length} fields of ${bound.size} nodes`);
  for (const field of fields) {
    const never = NEVER_IN_A_QUESTION.test(field);
    t.equal(met.has(field), !never, never ? `${field} is of analysis` : `${field} is in a question`);
  }
});

t.test('the watch sees what is passed over', async (t) => {
  const { tree, unread } = watched(parse('select a from only t').node, typeOf);
  const select = 'SelectStmt' in tree ? tree.SelectStmt : {};
  t.equal(select.targetList?.length, 1);
  const found = unread().map((u) => u.field);
  t.ok(found.includes('SelectStmt.fromClause') && !found.includes('SelectStmt.targetList'));
  Object.entries(select);
  t.ok(
    unread().some((u) => u.field === 'SelectStmt.fromClause'),
    'to list all members is to read none',
  );
});
