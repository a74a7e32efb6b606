import type * as Compiler from 'osl-compiler';
import t from 'tap';
import { partOf } from '../../support/part.js';
import { openEngine } from '../golden/engine.js';
import { type Mutant, mutant, mutatedCompilers, placesOf } from './mutated-compiler.js';
import { givenFor, PROBES, type Probe, SCRIPT, worldOf } from './probes.js';

/**
 * Each rule of the barrier and of the minimum group size, switched off by itself: what then gets through must be
 * refused by the verifier, or be seen in an answer. And with the verifier silent too: then most must be seen.
 */
t.setTimeout(600_000);

const MUTANTS: readonly Mutant[] = [
  mutant(
    'a pattern is looked at',
    'barrier/harmless',
    'return false;\n        if (pattern[i] === ',
    'return true;\n        if (pattern[i] === ',
  ),
  mutant('what JSON is searched for is looked at', 'barrier/harmless', '.test(brackets)', '.test(String())'),
  mutant('operators are listed', 'barrier/harmless', 'return OPERATORS.has(key);', 'return true;'),
  mutant('functions are listed', 'barrier/harmless', 'CALLS.has(callKey(e)) ||', 'true ||'),
  mutant('a list has one dimension', 'barrier/harmless', "list?.kind === 'array' &&", ''),
  mutant('a search is not deep', 'barrier/harmless', "text.split('-').length <= 20", 'true'),
  mutant(
    'a search has no syntax',
    'barrier/harmless',
    'const SEARCHES = new Set([',
    "const SEARCHES = new Set(['to_tsquery',",
  ),
  mutant('casts are listed', 'barrier/harmless', 'CASTS.has(`', 'true || CASTS.has(`'),
  mutant(
    'a scalar query may have two rows',
    'barrier/harmless',
    "case 'exists':\n            return true;",
    "case 'exists':\n        case 'scalar_query':\n            return true;",
  ),
  mutant(
    'a limit may be negative',
    'barrier/harmless',
    'isCount(query.limit, context.literals) && isCount(query.offset, context.literals)',
    'true',
  ),
  mutant(
    'a limit is a count',
    'barrier/constants',
    'test(text);\nconst isNoneOrOne',
    'test(text) || true;\nconst isNoneOrOne',
  ),
  mutant('one row is one row', 'barrier/constants', "text === '0' || text === '1'", 'true'),
  mutant('what rounds is listed', 'barrier/constants', 'ROUNDED.has(expr.definition.name) && ', ''),
  mutant(
    'a day is of every month',
    'barrier/constants',
    'holds(isPart) === true',
    'holds(() => true) === true',
  ),
  mutant('a sum may be too large', 'barrier/harmless', 'COUNTING.has(call.definition.name)', 'true'),
  mutant(
    'what a query reads from runs with it',
    'barrier/harmless',
    'q !== null && isHarmlessQuery(q, context)',
    'true',
  ),
  mutant(
    'a recursion may have no end',
    'barrier/harmless',
    't.recursive === true ? null : t.query',
    't.query',
  ),
  mutant(
    'what makes rows may fail at it',
    'barrier/harmless',
    "l.kind === 'spine' || l.kind === 'rows' ? [null]",
    "l.kind === 'spine' ? [null]",
  ),
  mutant(
    'arguments are looked at',
    'barrier/harmless',
    'return childrenOf(expr).every((e) => isHarmless(e, context));',
    'return true;',
  ),
  mutant('a constant is of our time', 'barrier/constants', 'BOUNDED.some((form) => form.test(text))', 'true'),
  mutant('a text is not a moment', 'barrier/constants', 'isMoment(expr.arg.type) &&', ''),
  mutant(
    'constants take few steps',
    'barrier/constants',
    'isMoment(expr.type) &&\n                budget.steps-- > 0 &&',
    'isMoment(expr.type) &&',
  ),
  mutant(
    'numbers of a question are small',
    'barrier/constants',
    '?.holds(isFewDigits) === true',
    ' !== undefined',
  ),
  mutant(
    'numbers take few steps',
    'barrier/constants',
    "expr.type !== 'int4')) &&\n                budget.steps-- > 0 &&",
    "expr.type !== 'int4')) &&",
  ),
  mutant('products of int4 are large', 'barrier/constants', " && expr.type !== 'int4'", ''),
  mutant(
    'derived columns are looked through',
    'barrier/row-reach',
    'this.#definitionsOf(ref).every((e) => this.isHarmless(e))',
    'true',
  ),
  mutant(
    'one figure is made of all rows',
    'barrier/row-reach',
    "e.kind === 'scalar_query' && (isOneFigure(e.query) || isOneRow(e.query, literals))",
    "e.kind === 'scalar_query'",
  ),
  mutant('masks are looked at', 'barrier/row-reach', 'this.isHarmless(column.expr)', 'true'),
  mutant(
    'what queries read from outside reaches',
    'barrier/row-reach',
    'found.push(...this.outerRefs(inner));',
    '',
  ),
  mutant(
    'who is asked of a LATERAL column is who it looks out to',
    'barrier/row-reach',
    'own(r.source) ? Object.freeze({ source: ref.source, scan: r.scan }) : r',
    'Object.freeze({ source: ref.source, scan: r.scan })',
  ),
  mutant(
    'ON asks nobody beside its join',
    'barrier/barrier',
    'place !== undefined && (place < first || place >= next)',
    'false',
  ),
  mutant('groups are of shown rows', 'barrier/row-reach', '!this.#isSettled(r.source, settled)', 'true'),
  mutant('WHERE is judged', 'barrier/barrier', 'for (const c of query.where)', 'for (const c of [])'),
  mutant('HAVING is judged', 'barrier/barrier', 'for (const c of query.having)', 'for (const c of [])'),
  mutant('ON is judged', 'barrier/barrier', 'this.#lookAtJoins(query.from, links, 0);', ';'),
  mutant(
    'what stands in ON beside a key is judged',
    'barrier/barrier',
    'for (const c of item.on) {',
    'for (const c of item.sealed ? [] : item.on) {',
  ),
  mutant(
    'what stands in ON asks first',
    'barrier/guard',
    'on: mapped(item.on, (c) => this.#condition(c)) }',
    'on: item.on }',
  ),
  mutant('what IN compares with is judged', 'barrier/barrier', 'this.sealed.add(expr.query);', 'void expr;'),
  mutant('what IN looks for is judged', 'barrier/barrier', 'this.#fenceUnlessHarmless(arg);', ''),
  mutant(
    'an equality of tables fences',
    'barrier/barrier',
    'this.fenced = true;\n        else if',
    ';\n        else if',
  ),
  mutant(
    'a FULL JOIN fences, and ON that hangs on rows beside its join',
    'barrier/barrier',
    'if (!this.reach.isHarmless(condition))\n            this.fenced = true;',
    '',
  ),
  mutant(
    'NOT IN is not a join',
    'barrier/barrier',
    'if (negated || named.length === 0',
    'if (named.length === 0',
  ),
  mutant(
    'a correlated IN is not a join',
    'barrier/barrier',
    ' || this.reach.outerRefs(query).length > 0',
    '',
  ),
  mutant(
    'EXISTS of groups is not a join',
    'barrier/barrier',
    'query.grouped || query.having.length > 0 || ',
    '',
  ),
  mutant('EXISTS without correlation is not a join', 'barrier/barrier', 'correlated.length === 0 || ', ''),
  mutant(
    'EXISTS joins from WHERE alone',
    'barrier/barrier',
    'return this.reach.outerRefsOf({ ...read, where: [] }, query).length === 0;',
    'return true;',
  ),
  mutant(
    'only aggregates hold HAVING back',
    'barrier/barrier',
    "childrenOf(e).filter(visit).length > 0 || e.kind === 'aggregate' || e.kind === 'grouping'",
    'childrenOf(e).filter(visit).length >= 0',
  ),
  mutant(
    'every touched scan is asked about',
    'barrier/guard',
    'const when = allOf([...shown.values()]);',
    'const when = allOf([...shown.values()].slice(0, 1));',
  ),
  mutant(
    'the question is the row filter',
    'barrier/guard',
    "truthTest(filter, 'true', false)",
    "truthTest(TRUE, 'true', false)",
  ),
  mutant(
    'every FROM item carries the answer up',
    'barrier/guard',
    'allOf(leaves.map((leaf) => this.#shown(leaf, scan).expr))',
    'TRUE',
  ),
  mutant(
    'HAVING of grouping sets stays above them',
    'barrier/guard',
    'isGuarded(c) && query.groupingSets === null && ',
    'isGuarded(c) && ',
  ),
  mutant('samples are of what is shown', 'scan', 'leaf.filter === null &&', ''),
  mutant('what is drawn is fenced', 'barrier/barrier', 'if (isVolatile(root))', 'if (false)'),
  mutant('nothing is drawn beside what is counted', 'groups', 'callsVolatile)', '() => false)'),
  mutant('with ties there are more rows', 'barrier/constants', 'query.withTies ||', ''),
  mutant(
    'grouping sets are fenced',
    'barrier/barrier',
    "q.kind === 'select' && q.groupingSets !== null",
    'false && q.groupingSets !== null',
  ),
  mutant(
    'a set without keys is a group',
    'minimum',
    'return groupBy.length === 0 && groupingSets === null;',
    'return groupBy.length === 0;',
  ),
  mutant('the fence is put up', 'barrier/guard', 'fenced: this.#guards.fenced,', 'fenced: false,'),
  mutant(
    'IN has its query work it out',
    'barrier/guard',
    "return Object.freeze({ ...after, offset: this.#slots.literal('0', 'int8') });",
    'return after;',
  ),
  mutant(
    'only harmless conjuncts go inside a fence',
    'barrier/barrier',
    'scan.fenced, isHarmless',
    'scan.fenced, () => true',
  ),
  mutant('a shown column weighs', 'groups', 'if (weight !== null)', 'if (false)'),
  mutant(
    'a shown column of a joined entity weighs',
    'groups',
    'if (!counts && scans.some',
    'if (false && scans.some',
  ),
  mutant('a join beside shown rows weighs', 'groups', 'if (repeated && besideRows && !ofOwn)', 'if (false)'),
  mutant('a join that repeats rows weighs', 'groups', 'if (repeated && !call.distinct &&', 'if (false &&'),
  mutant('rows around choose no figures', 'groups', 'if (looksOutward(block))', 'if (false)'),
  mutant('only summaries', 'groups', 'if (!SUMMARIES.has(name))', 'if (false)'),
  mutant(
    'columns as they are',
    'groups',
    'if (call.metric === null && !call.args',
    'if (false && !call.args',
  ),
  mutant('sums of intervals', 'groups', 'if (!canBeSummed(call))', 'if (false)'),
  mutant('grouped where they are read', 'groups', 'if (!block.grouped)', 'if (false)'),
  mutant('rows are judged', 'groups', 'if (!isSound || ', 'if (false && '),
  mutant('the optional side', 'groups', 'if (mayBeMissing(block.from ?? undefined, scan.id))', 'if (false)'),
  mutant('passages of hidden entities are hidden', 'store/scan', '[visible, ...where]', 'where'),
  mutant(
    'a facet has a row filter',
    'store/scan',
    'filter: rowFilter(view.allowed, view.slots)',
    'filter: null',
  ),
  mutant(
    'filters of passages are told apart',
    'store/scan',
    '{ harmless: filters.filter(isSafe), others: filters.filter((e) => !isSafe(e)) }',
    '{ harmless: filters, others: [] }',
  ),
  mutant(
    'what is derived rests on what is shown',
    'store/governed-store',
    'where: passages.where,',
    'where: [],',
  ),
  mutant(
    'passages run through what hides them',
    'store/scan',
    '{ from: scan, where: visible, ref: own }',
    '{ from: scan, where: [], ref: own }',
  ),
  mutant('so they do behind a fence', 'store/scan', 'where: visible, outputs', 'where: [], outputs'),
  mutant('filters of passages are fenced', 'store/scan', 'offset: zero', 'offset: null'),
  mutant(
    'and ask whether the passage is shown',
    'store/scan',
    'whereShown(above(f, scan.id, ref), ref(SHOWN))',
    'above(f, scan.id, ref)',
  ),
  mutant(
    'absurd values are bounded',
    'minimum',
    'new Block(withBounds(q, slots), slots)',
    'new Block(q, slots)',
  ),
  mutant(
    'figures are sized',
    'bounds',
    'return caseNode(beyond, slots.literal(',
    'return value; return caseNode(beyond, slots.literal(',
  ),
];

/** Second lines: no question gets as far as to need them. Nobody notices that one is gone, or it is no such line. */
const BEHIND: ReadonlyMap<string, string> = new Map([
  ['NOT IN is not a join', 'NOT stands around IN, and is looked at first'],
  ['EXISTS without correlation is not a join', 'EXISTS is correlated on keys'],
  ['EXISTS joins from WHERE alone', 'EXISTS is correlated in its WHERE'],
  [
    'and ask whether the passage is shown',
    "the fence is there; this is for the values of the planner's statistics",
  ],
  ['a limit may be negative', 'a negative literal is refused when it is bound'],
  ['a limit is a count', 'a negative literal is refused when it is bound'],
  ['only harmless conjuncts go inside a fence', 'what can fail asks first inside as well'],
]);

const SILENT: readonly Mutant[] = [
  mutant('', 'verify/barrier', 'this.#besideFilters();\n            this.#level(this.#root);', ''),
  mutant('', 'verify/barrier', 'const rows = [...block.where,', 'return; const rows = [...block.where,'),
];

const compilers = mutatedCompilers();
t.teardown(() => compilers.close());
const compilerWith = compilers.with;

const engine = await openEngine(['hr'], true);
t.teardown(() => engine.close());
await engine.setUp(SCRIPT);

/** Most mutants say to most probes what the honest compiler says: each statement is asked once. */
const asked = new Map<string, Promise<string>>();

function ask(sql: string, values: readonly (string | null)[]): Promise<string> {
  const key = JSON.stringify([sql, values]);
  const known = asked.get(key);
  if (known !== undefined) return known;
  const told = engine
    .ask(sql, values)
    .then(({ sqlstate, rows }) => sqlstate ?? JSON.stringify(rows.map((r) => JSON.stringify(r)).sort()));
  asked.set(key, told);
  return told;
}

/** The plans that are run for a probe. */
function plansOf(plan: Compiler.GovernedPlan, probe: Probe): readonly Compiler.GovernedPlan[] {
  if (probe.stores !== true) return [plan];
  return plan.runtime.flatMap((step) => {
    const stores = step.kind === 'retrieval' ? [step.store] : step.kind === 'hydration' ? step.stores : [];
    return stores.flatMap((s) =>
      s === null ? [] : [s.passages, s.commonWords, s.counts?.whole, s.derived].filter((p) => p != null),
    );
  });
}

/** What becomes of a probe: its answers for a hidden key and for nobody's, a refusal, or the verifier's alarm. */
async function outcome(compiler: typeof Compiler, probe: Probe): Promise<string> {
  const { catalog, access } = worldOf(compiler, probe.caller);
  const told: string[] = [];
  for (const key of probe.keys) {
    const text = probe.text.replaceAll('$1', key);
    try {
      const semantic = probe.entities === true || probe.stores === true;
      const plan = compiler.compile(
        text,
        catalog,
        access,
        semantic ? { joins: 'any' } : { world: 'physical' },
      );
      const answers: string[] = [];
      for (const { sql, slots } of plansOf(plan, probe).map(compiler.emit)) {
        const values = compiler.valuesOf<string | null>(slots, {
          text: (v) => v,
          client: () => null,
          attribute: () => ['eu'],
          pad: () => '\\x00',
          runtime: () => '[]',
          keys: () => [],
          given: givenFor,
        });
        answers.push(await ask(sql, values));
      }
      told.push(answers.join(' & '));
    } catch (error) {
      if (error instanceof compiler.InternalError) return 'alarm';
      if (!(error instanceof compiler.QueryError)) throw error;
      told.push(error.code);
    }
  }
  return told.join(' | ');
}

/** What becomes of the probes in their order, as far as the first of which `enough` holds. */
async function outcomes(
  compiler: typeof Compiler,
  enough: (said: string, i: number) => boolean = () => false,
): Promise<readonly string[]> {
  const all: string[] = [];
  for (const [i, probe] of PROBES.entries()) {
    const said = await outcome(compiler, probe);
    all.push(said);
    if (enough(said, i)) break;
  }
  return all;
}

t.test(
  'the text of each rule stands once in the compiler, also of those that run at another commit',
  async (t) => {
    for (const m of [...MUTANTS, ...SILENT]) t.equal(placesOf(m), 1, `${m.rule}: ${m.file}: ${m.from}`);
  },
);

t.test('every rule that is switched off is caught', async (t) => {
  const honest = await outcomes(await compilerWith([]));
  for (const [i, said] of honest.entries()) {
    const [hidden, nobody] = said.split(' | ');
    t.equal(hidden, nobody, `${PROBES[i]?.text}: ${said}`);
    t.not(said, 'alarm', PROBES[i]?.text ?? '');
  }
  const counts = { alarms: 0, seen: 0 };
  const part = partOf('mutants of the barrier', MUTANTS, 3);
  for (const m of part) {
    const said = await outcomes(await compilerWith([m]), (s) => s === 'alarm');
    const alarm = said.indexOf('alarm');
    const changed = said.findIndex((s, i) => s !== honest[i]);
    if (alarm >= 0) counts.alarms++;
    const behind = BEHIND.get(m.rule);
    if (behind !== undefined) {
      t.equal(changed, -1, `${m.rule}: not needed, since ${behind}`);
      continue;
    }
    t.ok(
      changed >= 0,
      `${m.rule}: ${changed < 0 ? 'nobody notices' : `${said[changed]?.slice(0, 40)} for ${PROBES[changed]?.text}`}`,
    );
    if (alarm < 0) continue;
    const differs = (said: string, i: number): boolean => said !== honest[i];
    const silent = await outcomes(await compilerWith([m, ...SILENT]), differs);
    if (silent.some(differs)) counts.seen++;
    else t.comment(`only the verifier notices: ${m.rule}`);
  }
  t.comment(JSON.stringify({ mutants: part.length, ...counts }));
  t.ok(counts.alarms > part.length / 2, 'the verifier notices most by itself');
});
