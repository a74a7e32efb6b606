/** A node of a plan, as EXPLAIN (FORMAT JSON) prints it, without what it does not say. */
export interface PlanNode {
  readonly type: string;
  /** Table of a scan as `schema.name`; otherwise null. */
  readonly relation: string | null;
  readonly alias: string | null;
  readonly index: string | null;
  /** Conditions by kind, such as `Filter` and `Index Cond`. */
  readonly conditions: ReadonlyMap<string, string>;
  /** Expressions that a sort orders by; empty for other nodes. */
  readonly sortKey: readonly string[];
  /** Such as `SubPlan 1`; otherwise null. */
  readonly subplan: string | null;
  /** `Outer`, `Inner`, `SubPlan`, `InitPlan`, … */
  readonly relationship: string;
  /** Rows of all executions; an estimate without ANALYZE. */
  readonly rows: number;
  /** Rows that a condition removed, of all executions. */
  readonly removed: number;
  /** Number of executions; 1 without ANALYZE. */
  readonly loops: number;
  readonly children: readonly PlanNode[];
}

export interface ExplainedPlan {
  readonly root: PlanNode;
  /** Planning and execution in ms; null without ANALYZE. */
  readonly ms: number | null;
  /** The planner's estimate, without a unit. */
  readonly cost: number;
  readonly analyzed: boolean;
  /** The plan for `--json`, with `?` for each value. */
  readonly redacted: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

const CONDITIONS = [
  'Filter',
  'Index Cond',
  'Recheck Cond',
  'Join Filter',
  'Hash Cond',
  'Merge Cond',
  'One-Time Filter',
];

/** Reads the JSON of EXPLAIN. @throws Error if it is none */
export function explainedPlan(value: unknown): ExplainedPlan {
  const [top] = listOf(value);
  const fields = fieldsOf(top);
  const plan = fieldsOf(fields['Plan']);
  const analyzed = fields['Execution Time'] !== undefined;
  return {
    root: nodeOf(plan),
    ms: analyzed ? Number(fields['Planning Time']) + Number(fields['Execution Time']) : null,
    cost: Number(plan['Total Cost']),
    analyzed,
    redacted: redacted(top, ''),
  };
}

function nodeOf(fields: Fields): PlanNode {
  const text = (name: string): string | null =>
    typeof fields[name] === 'string' ? String(fields[name]) : null;
  const number = (name: string): number => Number(fields[name] ?? 0);
  const loops = fields['Actual Loops'] === undefined ? 1 : number('Actual Loops');
  const relation = text('Relation Name');
  const rows = fields['Actual Rows'] === undefined ? number('Plan Rows') : number('Actual Rows') * loops;
  const removed = REMOVED.reduce((sum, name) => sum + number(name), 0) * loops;
  return {
    type: text('Node Type') ?? '',
    relation: relation === null ? null : `${text('Schema') ?? ''}.${relation}`,
    alias: text('Alias'),
    index: text('Index Name'),
    conditions: new Map(
      CONDITIONS.flatMap((name) => (text(name) === null ? [] : [[name, text(name) ?? ''] as const])),
    ),
    sortKey: listOf(fields['Sort Key']).map(String),
    subplan: text('Subplan Name'),
    relationship: text('Parent Relationship') ?? '',
    rows,
    removed,
    loops,
    children: listOf(fields['Plans']).map((child) => nodeOf(fieldsOf(child))),
  };
}

const REMOVED = ['Rows Removed by Filter', 'Rows Removed by Index Recheck', 'Rows Removed by Join Filter'];

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** All nodes of a plan, from the top. */
export function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...node.children.flatMap(nodesOf)];
}

/** Texts of a plan that are names or words of Postgres; all others may hold values. */
const NAMES: ReadonlySet<string> = new Set([
  'Node Type',
  'Parent Relationship',
  'Subplan Name',
  'CTE Name',
  'Function Name',
  'Relation Name',
  'Schema',
  'Alias',
  'Index Name',
  'Join Type',
  'Strategy',
  'Partial Mode',
  'Scan Direction',
  'Operation',
  'Command',
  'Sort Method',
  'Sort Space Type',
]);

function redacted(value: unknown, name: string): unknown {
  if (typeof value === 'string') return NAMES.has(name) ? value : withoutValues(value);
  if (Array.isArray(value)) return value.map((item) => redacted(item, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'Output')
      .map(([key, inner]) => [key, redacted(inner, key)]),
  );
}

/** A condition with `?` for each literal. */
export function withoutValues(text: string): string {
  return text
    .replace(/'(?:[^']|'')*'/g, '?')
    .replace(/(?<!(?:SubPlan|InitPlan) )(?<![\w$"?.])\d+(?:\.\d+)?(?:e[+-]?\d+)?/g, '?');
}
