import { identifier, quoteLiteral } from 'osl-compiler';
import {
  openSessionOnFirst,
  type PostgresSession,
  withoutPassword,
} from '../../../src/base/postgres/index.js';
import { describeConnectFault } from '../../../src/service/connector-url.js';
import { usage } from '../../exit.js';

/** A node of a plan as printed by EXPLAIN (FORMAT JSON), with defaults for absent fields. */
export interface QueryPlanNode {
  readonly type: string;
  /** Table of a scan as `schema.name`; null for other nodes. */
  readonly relation: string | null;
  readonly alias: string | null;
  readonly index: string | null;
  /** Conditions by kind, such as `Filter` and `Index Cond`. */
  readonly conditions: ReadonlyMap<string, string>;
  /** Expressions that a sort orders by; empty for other nodes. */
  readonly sortKey: readonly string[];
  /** Name of the node as a subplan, such as `SubPlan 1`; null for other nodes. */
  readonly subplan: string | null;
  /** Relationship to the parent node: `Outer`, `Inner`, `SubPlan`, `InitPlan`, … */
  readonly relationship: string;
  /** Rows returned by all executions; an estimate without ANALYZE. */
  readonly rows: number;
  /** Rows removed by conditions in all executions. */
  readonly removed: number;
  /** Number of executions; 1 without ANALYZE. */
  readonly loops: number;
  readonly children: readonly QueryPlanNode[];
}

export interface ExplainedPlan {
  readonly root: QueryPlanNode;
  /** Time of planning and execution in ms; null without ANALYZE. */
  readonly ms: number | null;
  /** The planner's cost estimate, without a unit. */
  readonly cost: number;
  readonly analyzed: boolean;
  /** The plan for `--json`, with `?` in place of each value. */
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

/** Reads the JSON output of EXPLAIN. @throws TypeError for anything else */
export function explainedPlan(value: unknown): ExplainedPlan {
  const [top] = listOf(value, 'the output');
  const fields = fieldsOf(top, 'the output');
  const plan = fieldsOf(fields['Plan'], 'Plan');
  const analyzed = fields['Execution Time'] !== undefined;
  return {
    root: nodeOf(plan),
    ms: analyzed ? numberIn(fields, 'Planning Time') + numberIn(fields, 'Execution Time') : null,
    cost: numberIn(plan, 'Total Cost'),
    analyzed,
    redacted: redacted(top, ''),
  };
}

function nodeOf(fields: Fields): QueryPlanNode {
  const text = (name: string): string | null =>
    fields[name] === undefined ? null : textOf(fields[name], name);
  const loops = numberIn(fields, 'Actual Loops', 1);
  const relation = text('Relation Name');
  const rows =
    fields['Actual Rows'] === undefined
      ? numberIn(fields, 'Plan Rows')
      : numberIn(fields, 'Actual Rows') * loops;
  const removed = REMOVED.reduce((sum, name) => sum + numberIn(fields, name, 0), 0) * loops;
  return {
    type: textOf(fields['Node Type'], 'Node Type'),
    relation: relation === null ? null : `${text('Schema') ?? ''}.${relation}`,
    alias: text('Alias'),
    index: text('Index Name'),
    conditions: new Map(
      CONDITIONS.flatMap((name) => (text(name) === null ? [] : [[name, text(name) ?? ''] as const])),
    ),
    sortKey: listOf(fields['Sort Key'] ?? [], 'Sort Key').map((key) => textOf(key, 'Sort Key')),
    subplan: text('Subplan Name'),
    relationship: text('Parent Relationship') ?? '',
    rows,
    removed,
    loops,
    children: listOf(fields['Plans'] ?? [], 'Plans').map((child) => nodeOf(fieldsOf(child, 'Plans'))),
  };
}

const REMOVED = ['Rows Removed by Filter', 'Rows Removed by Index Recheck', 'Rows Removed by Join Filter'];

function fieldsOf(value: unknown, name: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notExplained(name);
  return { ...value };
}

function listOf(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw notExplained(name);
  return value;
}

function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string') throw notExplained(name);
  return value;
}

/** @param absent value to use if the field is absent; undefined if the field is required */
function numberIn(fields: Fields, name: string, absent?: number): number {
  const value = fields[name] === undefined ? absent : fields[name];
  if (typeof value !== 'number' || !Number.isFinite(value)) throw notExplained(name);
  return value;
}

function notExplained(name: string): TypeError {
  return new TypeError(`EXPLAIN printed no plan of the known form: ${name}`);
}

/** All nodes of a plan, from the top. */
export function nodesOf(node: QueryPlanNode): readonly QueryPlanNode[] {
  return [node, ...node.children.flatMap(nodesOf)];
}

/** Fields of a plan whose texts are names or keywords of Postgres; other texts may contain values. */
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

/** Parts of SQL or of a plan's condition: quoted names, comments, and literals. */
const VALUES = new RegExp(
  [
    '"(?:[^"]|"")*"',
    String.raw`--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/`,
    String.raw`\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'`,
    String.raw`(?:\b(?:[bBxXnN]|[uU]&))?'(?:[^']|'')*'`,
    String.raw`(?<![\w$])\$(?<tag>(?:[A-Za-z_]\w*)?)\$[\s\S]*?\$\k<tag>\$`,
    String.raw`(?<!(?:SubPlan|InitPlan) )(?<![\w$"?.])\d+(?:\.\d+)?(?:e[+-]?\d+)?`,
  ].join('|'),
  'g',
);

/** Replaces each literal in a text by `?`, and leaves out comments. */
export function withoutValues(text: string): string {
  return text.replace(VALUES, (part) => {
    if (part.startsWith('"')) return part;
    return part.startsWith('--') || part.startsWith('/*') ? '' : '?';
  });
}

/** A statement with its values, and the settings and role with which it runs. */
export interface StatementExecution {
  readonly text: string;
  readonly values: readonly (string | null)[];
  /** Types of the values as OIDs. */
  readonly types: readonly number[];
  /** Settings of the transaction; they are set before the role. */
  readonly settings: ReadonlyMap<string, string>;
  /** Role of the transaction; null: the role of the login. */
  readonly role: string | null;
}

export type StatementOutcome<T> =
  | { readonly kind: 'done'; readonly result: T }
  | { readonly kind: 'failed'; readonly reason: string };

/** Number of rows of a statement, and a digest that does not depend on their order. */
export interface RowSetDigest {
  readonly rows: number;
  readonly digest: string;
}

const CONNECT_MARGIN_MS = 5_000;

/** Runs statements of callers, each in a read-only transaction that is rolled back. */
export class SpeedSession {
  readonly #session: PostgresSession;
  readonly #timeoutMs: number;

  private constructor(session: PostgresSession, timeoutMs: number) {
    this.#session = session;
    this.#timeoutMs = timeoutMs;
  }

  /** @throws Failure if the database cannot be reached */
  static async open(url: string, timeoutMs: number): Promise<SpeedSession> {
    const options = {
      connectionString: url,
      application_name: 'osl rls speed',
      silenceMs: timeoutMs + CONNECT_MARGIN_MS,
    };
    const open = await openSessionOnFirst(url, options).catch((error: unknown) => {
      throw usage(`${withoutPassword(url)}: ${describeConnectFault(error)}`);
    });
    return new SpeedSession(open, timeoutMs);
  }

  explain(execution: StatementExecution, analyze: boolean): Promise<StatementOutcome<ExplainedPlan>> {
    const options = analyze ? 'ANALYZE, TIMING off, BUFFERS off' : 'ANALYZE off';
    return this.#as(execution, async (call) => {
      const [row] = await this.#session.query(`EXPLAIN (VERBOSE, ${options}, FORMAT JSON) ${call}`);
      return explainedPlan(row?.['QUERY PLAN']);
    });
  }

  digest(execution: StatementExecution): Promise<StatementOutcome<RowSetDigest>> {
    // The line break ends a comment at the end of the statement.
    const text = `SELECT pg_catalog.count(*)::text AS rows,
      coalesce(pg_catalog.sum(pg_catalog.hashtextextended(r::text, 0)), 0)::text AS digest
      FROM (${execution.text}
      ) AS r`;
    return this.#as({ ...execution, text }, async (call) => {
      const [row] = await this.#session.query(call);
      return { rows: Number(row?.['rows']), digest: String(row?.['digest']) };
    });
  }

  /** A column value, as text, from a row that the caller sees; null if there is no such row or the statement fails. */
  async sample(execution: StatementExecution): Promise<string | null> {
    const found = await this.#as(execution, async (call) => {
      const [row] = await this.#session.query(call);
      return row === undefined ? null : String(Object.values(row)[0]);
    });
    return found.kind === 'done' ? found.result : null;
  }

  /** Prepares the statement, which gives its values types, and calls `work` with the EXECUTE statement. */
  async #as<T>(
    { text, values, types, settings, role }: StatementExecution,
    work: (call: string) => Promise<T>,
  ): Promise<StatementOutcome<T>> {
    try {
      await this.#session.query('BEGIN READ ONLY');
      for (const [name, value] of settings)
        await this.#session.query('SELECT pg_catalog.set_config($1, $2, true)', [name, value]);
      if (role !== null) await this.#session.query(`SET LOCAL ROLE ${identifier(role)}`);
      // Applications write values into the statement, so a generic plan would be misleading.
      await this.#session.query(
        `SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL statement_timeout = ${this.#timeoutMs}`,
      );
      const names = await this.#typeNames(types);
      await this.#session.query(`PREPARE osl_speed${names} AS ${text}`);
      const list = values.map((value) => (value === null ? 'NULL' : quoteLiteral(value)));
      return {
        kind: 'done',
        result: await work(`EXECUTE osl_speed${list.length === 0 ? '' : `(${list.join(', ')})`}`),
      };
    } catch (error) {
      return { kind: 'failed', reason: failureOf(error) };
    } finally {
      await this.#session.query('ROLLBACK; DEALLOCATE ALL');
    }
  }

  async #typeNames(types: readonly number[]): Promise<string> {
    if (types.length === 0) return '';
    const rows = await this.#session.query(
      `SELECT pg_catalog.format_type(t.id, NULL) AS name FROM pg_catalog.unnest($1::oid[]) WITH ORDINALITY AS t (id, n)
       ORDER BY t.n`,
      [types],
    );
    return `(${rows.map(({ name }) => String(name)).join(', ')})`;
  }

  close(): Promise<void> {
    return this.#session.end();
  }
}

/**
 * The reason of a database error. Only messages of class 42 are shown, since they name objects and types; others may
 * hold values. @throws other errors
 */
function failureOf(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') throw error;
  const { code, message } = error;
  if (code === '57014') return `it was stopped after the time limit (${code})`;
  return /^42[0-9A-Z]{3}$/.test(code) ? `${message} (${code})` : `it fails with SQLSTATE ${code}`;
}
