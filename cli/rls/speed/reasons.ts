import type { Node } from '@pgsql/types';
import { QueryError } from 'osl-compiler';
import { counted } from '../../output.js';
import type { DatabaseFunction, PgRelation } from '../catalog/catalog.js';
import type { CheckedDatabase } from '../database.js';
import { calledName, expressionNode, namesOf, partsOf } from '../nodes.js';
import { columnOf, eachNode } from '../statement.js';
import type { StatementComparison } from './comparison.js';
import { nodesOf, type QueryPlanNode, withoutValues } from './session.js';
import { type GivenStatement, selectIn } from './statements.js';

/** A difference between two plans that explains why one of them takes longer. */
export interface SpeedReason {
  readonly kind:
    | 'not leakproof'
    | 'function per row'
    | 'subquery per row'
    | 'subquery as filter'
    | 'or without index'
    | 'fence'
    | 'rows read'
    | 'sort'
    | 'attributes'
    | 'not told';
  /** `schema.name`; null if the reason does not concern a single table. */
  readonly table: string | null;
  readonly text: string;
}

/** An operator or function of the database, with the function that implements it. */
export interface Leakproofness {
  /** Operator such as `~~`, or the name of a function. */
  readonly name: string;
  /** Type of the left operand; empty for a function. */
  readonly type: string;
  /** Name of the implementing function, such as `textlike`. */
  readonly procedure: string;
  readonly leakproof: boolean;
}

export interface ReasonContext {
  readonly database: CheckedDatabase;
  readonly leakproofness: readonly Leakproofness[];
  /** Operators and functions of the statement, each with the columns in its operands. */
  readonly statement: readonly StatementTest[];
  /** True if the plans have the row counts of an execution instead of estimates. */
  readonly analyzed: boolean;
}

/** An operator or function in a statement. */
interface StatementTest {
  readonly name: string;
  readonly columns: ReadonlySet<string>;
}

/** Operators and functions of a parsed statement. */
export function testsOf(statement: Node): readonly StatementTest[] {
  const found: StatementTest[] = [];
  eachNode(statement, (node) => {
    const name = testName(node);
    if (name !== null) found.push({ name, columns: columnsIn(node) });
  });
  return found;
}

function testName(node: Node): string | null {
  if ('FuncCall' in node) return calledName(node.FuncCall).name;
  return 'A_Expr' in node ? (namesOf(node.A_Expr.name).at(-1) ?? null) : null;
}

/** Reasons why `slow` takes longer than `fast`, most informative first; empty if the plans show none. */
export function reasonsFor(
  slow: QueryPlanNode,
  fast: QueryPlanNode,
  context: ReasonContext,
): readonly SpeedReason[] {
  const nodes = nodesOf(slow);
  const found = [
    ...nodes.flatMap((node) => callsPerRow(node, context)),
    ...nodes.flatMap(subplanPerRow),
    ...tablesIn(slow).flatMap((table) => lostIndexes(table, slow, fast, context)),
    ...nodes.flatMap(fence),
    ...sorts(slow, fast),
    ...(context.analyzed ? tablesIn(slow).flatMap((table) => rowsRead(table, slow, fast)) : []),
  ];
  return [...new Map(found.map((reason) => [reason.text, reason])).values()];
}

function tablesIn(plan: QueryPlanNode): readonly string[] {
  return [...new Set(nodesOf(plan).flatMap(({ relation }) => relation ?? []))];
}

/** A scan of one table, with the indexes that it searches. */
interface Scan {
  readonly node: QueryPlanNode;
  readonly indexes: ReadonlySet<string>;
}

function scansOf(plan: QueryPlanNode, table: string): readonly Scan[] {
  return nodesOf(plan)
    .filter(({ relation }) => relation === table)
    .map((node) => ({ node, indexes: indexesOf(node) }));
}

/** The indexes that a scan searches by a condition: its own, or those of the bitmap below it. */
function indexesOf(node: QueryPlanNode): ReadonlySet<string> {
  const all = node.type === 'Bitmap Heap Scan' ? node.children.flatMap(nodesOf) : [node];
  return new Set(
    all.flatMap(({ index, conditions }) => (index !== null && conditions.has('Index Cond') ? [index] : [])),
  );
}

/** Reports conditions that `slow` checks row by row while `fast` finds the rows by an index. */
function lostIndexes(
  table: string,
  slow: QueryPlanNode,
  fast: QueryPlanNode,
  context: ReasonContext,
): readonly SpeedReason[] {
  const { database } = context;
  const relation = relationOf(table, database);
  if (relation === null) return [];
  const used = new Set(scansOf(fast, table).flatMap(({ indexes }) => [...indexes]));
  return scansOf(slow, table).flatMap(({ node, indexes }) => {
    const filter = node.conditions.get('Filter');
    if (filter === undefined) return [];
    const conjuncts = conjunctsOf(filter);
    return [...used]
      .filter((index) => !indexes.has(index))
      .flatMap((index): readonly SpeedReason[] => {
        const columns = columnsOfIndex(index, relation);
        const own = conjuncts.filter(
          // A condition with a hashed subquery counts, too: the plan does not show the column that it compares.
          (conjunct) => intersects(columnsIn(conjunct), columns) || columnsIn(conjunct).size === 0,
        );
        return own.flatMap((conjunct) => whyUnused(conjunct, index, relation, context) ?? []);
      });
  });
}

function whyUnused(
  conjunct: Node,
  index: string,
  relation: PgRelation,
  context: ReasonContext,
): SpeedReason | null {
  const table = `${relation.schema}.${relation.name}`;
  if (partsOf(conjunct, 'OR_EXPR').length > 1)
    return {
      kind: 'or without index',
      table,
      text: `${table}: an OR is checked for each row, and index ${index} is not used, because one of its conditions has no index`,
    };
  if (subplansIn(conjunct) > 0)
    return {
      kind: 'subquery as filter',
      table,
      text: `${table}: a subquery is a filter for each row, so index ${index} is not used`,
    };
  const leaky = leakyIn(conjunct, relation, context);
  if (leaky === null) return null;
  return {
    kind: 'not leakproof',
    table,
    text: `${table}: index ${index} is not used, because ${leaky} is not leakproof and must wait for the policy`,
  };
}

/** Describes an operator or function that is not leakproof, such as `the operator ~~ (textlike)`; null if none. */
function leakyIn(
  conjunct: Node,
  relation: PgRelation,
  { leakproofness: known, statement }: ReasonContext,
): string | null {
  const found: string[] = [];
  eachNode(conjunct, (node) => {
    const name = testName(node);
    // Only conditions of the statement have to wait for the policy, not those of the policy itself.
    if (name === null || !isOfStatement(name, columnsIn(node), statement)) return;
    const called = 'FuncCall' in node;
    const type = 'A_Expr' in node ? typeOf(node.A_Expr.lexpr, relation) : '';
    const all = known.filter((one) => one.name === name && (one.type === '') === called);
    const exact = all.filter((one) => type === null || one.type === type);
    const candidates = exact.length > 0 ? exact : all;
    const [first] = candidates;
    if (first === undefined || candidates.some(({ leakproof }) => leakproof)) return;
    found.push(called ? `the function ${name}` : `the operator ${name} (${first.procedure})`);
  });
  return found[0] ?? null;
}

function isOfStatement(
  name: string,
  columns: ReadonlySet<string>,
  statement: readonly StatementTest[],
): boolean {
  return statement.some(
    (test) => test.name === name && [...columns].every((column) => test.columns.has(column)),
  );
}

/** Type of an operand; null if it is unknown. */
function typeOf(node: Node | undefined, relation: PgRelation): string | null {
  if (node === undefined) return null;
  if ('TypeCast' in node) {
    const name = namesOf(node.TypeCast.typeName?.names).at(-1) ?? null;
    return name === 'bpchar' ? 'character' : name;
  }
  const column = columnOf(node);
  return relation.columns.find(({ name }) => name === column?.name)?.type ?? null;
}

/** Conditions that are checked for each row. */
const PER_ROW: ReadonlySet<string> = new Set(['Filter', 'Join Filter']);

/** Reports user-defined functions in conditions that run for each row. */
function callsPerRow(
  { conditions, rows, removed, relation }: QueryPlanNode,
  { database, analyzed }: ReasonContext,
): readonly SpeedReason[] {
  const of = analyzed ? `each of up to ${counted(rows + removed, 'row', 'rows')}` : 'each row';
  return [...conditions].flatMap(([kind, text]) => {
    if (!PER_ROW.has(kind)) return [];
    return conjunctsOf(text).flatMap((conjunct) =>
      functionsIn(conjunct, database).map((called): SpeedReason => {
        const name = `${called.schema}.${called.name}`;
        const what = `${name}() (${called.language}${called.securityDefiner ? ', SECURITY DEFINER' : ''})`;
        return {
          kind: 'function per row',
          table: relation,
          text: `${relation ?? 'a join'}: ${what} is called for ${of}`,
        };
      }),
    );
  });
}

function functionsIn(conjunct: Node, database: CheckedDatabase): readonly DatabaseFunction[] {
  const found = new Set<DatabaseFunction>();
  eachNode(conjunct, (node) => {
    if (!('FuncCall' in node)) return;
    const { schema, name } = calledName(node.FuncCall);
    const [called] = database.functionsNamed({ schema, name });
    const [unqualified] = [...database.catalog.functions.values()].filter((f) => f.name === name);
    const match = called ?? (schema === null ? unqualified : undefined);
    // Functions of extensions are left out, like those of Postgres.
    if (match !== undefined && match.extension === null) found.add(match);
  });
  return [...found];
}

/** Reports subqueries that run again for each row. */
function subplanPerRow(node: QueryPlanNode): readonly SpeedReason[] {
  const filter = [...node.conditions.values()].join(' ');
  return node.children
    .filter(({ relationship, subplan, loops }) => {
      const isHashed = filter.includes(`hashed ${subplan})`);
      return relationship === 'SubPlan' && loops > 1 && !isHashed && filter.includes(`${subplan})`);
    })
    .map((child): SpeedReason => {
      const tables = tablesIn(child).join(', ') || 'no table';
      return {
        kind: 'subquery per row',
        table: node.relation,
        text: `${node.relation ?? 'a join'}: a subquery over ${tables} runs ${counted(child.loops, 'time', 'times')}, once for each row`,
      };
    });
}

/** Reports a filter above a subquery that Postgres did not pull up, as with security_barrier. */
function fence(node: QueryPlanNode): readonly SpeedReason[] {
  if (node.type !== 'Subquery Scan' || !node.conditions.has('Filter')) return [];
  const below = node.children.flatMap(tablesIn).join(', ') || 'no table';
  return [
    {
      kind: 'fence',
      table: null,
      text: `${below}: a condition is checked above the subquery ${node.alias ?? ''}, after all of its rows are read`,
    },
  ];
}

/** A plan that reads more than this many times the rows of the other plan is reported. */
const MANY = 2;
/** Minimum number of rows read that can explain a difference. */
const FEW = 100;

function rowsRead(table: string, slow: QueryPlanNode, fast: QueryPlanNode): readonly SpeedReason[] {
  const read = (plan: QueryPlanNode): number =>
    scansOf(plan, table).reduce((sum, { node }) => sum + node.rows + node.removed, 0);
  const removed = scansOf(slow, table).reduce((sum, { node }) => sum + node.removed, 0);
  const [more, less] = [read(slow), read(fast)];
  if (more < FEW || more <= MANY * less) return [];
  const gone = removed === 0 ? '' : ` and ${removed} of them removed by the filter`;
  return [
    {
      kind: 'rows read',
      table,
      text: `${table}: ${counted(more, 'row is', 'rows are')} read${gone}; the other plan reads ${less}`,
    },
  ];
}

/** Reports a sort that the other plan does not need. */
function sorts(slow: QueryPlanNode, fast: QueryPlanNode): readonly SpeedReason[] {
  const [more, less] = [slow, fast].map((plan) => nodesOf(plan).filter(({ sortKey }) => sortKey.length > 0));
  const [first] = more ?? [];
  if (first === undefined || (less ?? []).length >= (more ?? []).length) return [];
  const keys = first.sortKey.map(withoutValues).join(', ');
  return [
    { kind: 'sort', table: null, text: `rows are sorted by ${keys}, which the other plan does not need` },
  ];
}

/** Operands of the top-level AND in a plan's condition; empty if the condition cannot be parsed. */
function conjunctsOf(condition: string): readonly Node[] {
  // Plans refer to subplans in a notation that is not SQL.
  const text = condition
    .replace(/\(?alternatives: SubPlan \d+ or hashed SubPlan \d+\)?/g, 'subplan()')
    .replace(/\((?:hashed )?(?:SubPlan|InitPlan) \d+\)(?:\.col\d+)?/g, 'subplan()');
  try {
    const node = expressionNode(text);
    return node === null ? [] : partsOf(node, 'AND_EXPR');
  } catch (error) {
    if (error instanceof QueryError) return [];
    throw error;
  }
}

function subplansIn(node: Node): number {
  let found = 0;
  eachNode(node, (inner) => {
    if ('FuncCall' in inner && calledName(inner.FuncCall).name === 'subplan') found += 1;
  });
  return found;
}

function columnsIn(node: Node): ReadonlySet<string> {
  const found = new Set<string>();
  eachNode(node, (inner) => {
    const column = columnOf(inner);
    if (column !== null) found.add(column.name);
  });
  return found;
}

function columnsOfIndex(index: string, relation: PgRelation): ReadonlySet<string> {
  const keys = relation.indexes.find(({ name }) => name === index)?.keys ?? [];
  return new Set(
    keys.flatMap(({ column, text }) => {
      if (column !== null) return [column];
      return conjunctsOf(text).flatMap((node) => [...columnsIn(node)]);
    }),
  );
}

function intersects(some: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  return [...some].some((one) => others.has(one));
}

function relationOf(table: string, { relations }: CheckedDatabase): PgRelation | null {
  return relations.find(({ schema, name }) => `${schema}.${name}` === table) ?? null;
}

/** The reason for governed SQL that takes longer because it reads attributes first. */
function attributesReason(ms: string): SpeedReason {
  return {
    kind: 'attributes',
    table: null,
    text: `the caller's attributes are read from their tables first, as in each request: ${ms} ms`,
  };
}

/** The reason reported for a difference, or a part of it, that the plans do not explain. */
function untold(what: string): SpeedReason {
  return { kind: 'not told', table: null, text: `${what}, and the plans do not tell why` };
}

/** Names of the operators and functions in the conditions of plans, used to look up whether they are leakproof. */
export function operatorsIn(plans: readonly QueryPlanNode[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { conditions } of plans.flatMap(nodesOf))
    for (const text of conditions.values())
      for (const conjunct of conjunctsOf(text))
        eachNode(conjunct, (node) => {
          const name = testName(node);
          if (name !== null) found.add(name);
        });
  return found;
}

/** A comparison with its reasons. */
export interface ExplainedComparison {
  readonly compared: StatementComparison;
  /** `about equal` if the times differ by less than a factor of `EQUAL`. */
  readonly faster: 'governed' | 'row security' | 'about equal';
  /** Time (or cost) under row security divided by that of governed SQL: above 1, governed SQL is faster. */
  readonly ratio: number;
  readonly reasons: readonly SpeedReason[];
}

/** Two times that differ by less than this factor are about equal. */
const EQUAL = 1.3;

/** Determines the faster side of a comparison, and the reasons that the plans show. */
export function explained(
  compared: StatementComparison,
  database: CheckedDatabase,
  leakproofness: readonly Leakproofness[],
): ExplainedComparison {
  const { rowSecurity, governed } = compared;
  const [theirs, ours] = [rowSecurity.ms ?? rowSecurity.cost, governed.ms ?? governed.cost];
  const ratio = theirs === ours ? 1 : theirs / ours; // plans that read nothing cost 0
  if (ratio < EQUAL && ratio > 1 / EQUAL) return { compared, faster: 'about equal', ratio, reasons: [] };
  const context = {
    database,
    leakproofness,
    statement: testsIn(compared.statement),
    analyzed: rowSecurity.ms !== null,
  };
  const [under, through] = [rowSecurity.plan.root, governed.plan.root];
  if (ratio >= EQUAL)
    return { compared, faster: 'governed', ratio, reasons: reasonsFor(under, through, context) };
  const { attributesMs } = governed;
  const reading = attributesMs > 0 ? [attributesReason(figure(attributesMs))] : [];
  // The plan is a reason only if the statement takes longer even without the time for attributes.
  const alone = ours - attributesMs > EQUAL * theirs ? reasonsFor(through, under, context) : null;
  const rest =
    alone?.length === 0 && reading.length > 0 ? [untold('the statement itself takes longer, too')] : [];
  return { compared, faster: 'row security', ratio, reasons: [...(alone ?? []), ...reading, ...rest] };
}

function testsIn({ text }: GivenStatement): readonly StatementTest[] {
  const parsed = selectIn(text);
  return parsed.kind === 'select' ? testsOf(parsed.node) : [];
}

/** Rounds for display: to an integer if at least 100, to three significant digits if at least 10, otherwise to two. */
export function figure(value: number): string {
  if (value >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}
