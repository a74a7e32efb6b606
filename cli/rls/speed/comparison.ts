import { randomUUID } from 'node:crypto';
import { emit, oidOf, QueryError, quoteIdentifier, type Slot } from 'osl-compiler';
import { slotValues } from '../../../src/ask/data/runtime/slot-values.js';
import { explainPlan } from '../../../src/ask/index.js';
import type { Service } from '../../../src/service/service.js';
import { type ComparedCaller, sessionSettings } from '../compare/callers.js';
import type {
  ExplainedPlan,
  RowSetDigest,
  SpeedSession,
  StatementExecution,
  StatementOutcome,
} from './session.js';
import type { GivenStatement } from './statements.js';
import type { ReadyStatement } from './values.js';

/** Number of executions on each side; the two sides take turns. */
const ROUNDS = 3;

/** Measurements of a statement, either under row security or as governed SQL. */
interface Side {
  /** Median time of an execution in ms; null without ANALYZE. */
  readonly ms: number | null;
  /** Each execution in ms; empty without ANALYZE. */
  readonly rounds: readonly number[];
  /** The planner's cost estimate for the statement, without a unit. */
  readonly cost: number;
  /** Number of rows; null if they were not counted. */
  readonly rows: number | null;
  /** Plan of the execution with the median time. */
  readonly plan: ExplainedPlan;
}

interface GovernedSide extends Side {
  readonly sql: string;
  /** Median ms to read the caller's attributes from entities, as each request does; part of `ms`. */
  readonly attributesMs: number;
}

/** A statement that ran on both sides. */
export interface StatementComparison {
  readonly kind: 'compared';
  readonly statement: GivenStatement;
  readonly caller: ComparedCaller;
  readonly rowSecurity: Side;
  readonly governed: GovernedSide;
  /** True if both returned the same rows; null if they were not compared. */
  readonly sameRows: boolean | null;
}

/** A statement that could not be compared. */
export interface SkippedStatement {
  readonly kind: 'not compared';
  readonly statement: GivenStatement;
  readonly caller: ComparedCaller | null;
  readonly reason: string;
}

export interface Sides {
  /** Session of a login that can use SET ROLE to become the callers' roles. */
  readonly direct: SpeedSession;
  /** Session of the gateway's login. */
  readonly reader: SpeedSession;
  readonly service: Service;
  readonly analyze: boolean;
}

/** Settings of the gateway's sessions that affect the meaning of literals or the text of results. */
const OUTPUT: readonly (readonly [string, string])[] = [
  ['TimeZone', 'UTC'],
  ['DateStyle', 'ISO, MDY'],
  ['IntervalStyle', 'postgres'],
  ['extra_float_digits', '1'],
  ['bytea_output', 'hex'],
  ['standard_conforming_strings', 'on'],
];

/** The execution of a statement under row security, with the settings and the role of the caller. */
export function underRowSecurity(
  text: string,
  caller: ComparedCaller,
  searchPath: readonly string[] | null,
): StatementExecution {
  const path =
    searchPath === null ? [] : [['search_path', searchPath.map(quoteIdentifier).join(', ')] as const];
  return {
    text,
    values: [],
    types: [],
    settings: new Map([...OUTPUT, ...path, ...sessionSettings(caller)]),
    role: caller.role,
  };
}

/** Runs a statement under row security and as governed SQL, in turns. */
export async function compareStatement(
  sides: Sides,
  statement: GivenStatement,
  caller: ComparedCaller,
  token: string,
  searchPath: readonly string[] | null,
  ready: ReadyStatement,
): Promise<StatementComparison | SkippedStatement> {
  const refused = (reason: string): SkippedStatement => ({ kind: 'not compared', statement, caller, reason });
  if (ready.kind === 'refused') return refused(ready.reason);
  const { direct, reader, service, analyze } = sides;
  const under = underRowSecurity(ready.text, caller, searchPath);
  // A plain EXPLAIN fails if the caller may not run the statement, before anything is executed.
  const first = await direct.explain(under, false);
  if (first.kind === 'failed') return refused(`under row security: ${hidden(first.reason, ready.sampled)}`);
  const governed = await governedStatement(service, token, ready.text);
  if (governed.kind === 'refused')
    return refused(`the gateway refuses it: ${hidden(governed.reason, ready.sampled)}`);
  const { sql: text, values, types, readAttributes } = governed;
  const settings = new Map([...OUTPUT, ['search_path', 'pg_catalog, pg_temp'] as const]);
  const through: StatementExecution = { text, values, types, settings, role: null };
  const taken = await inTurns(sides, under, through, readAttributes);
  if (taken.kind === 'failed') return refused(hidden(taken.reason, ready.sampled));
  const { plans, attributes } = taken.result;
  const [rowsUnder, rowsThrough] = analyze
    ? [await direct.digest(under), await reader.digest(through)]
    : [null, null];
  return {
    kind: 'compared',
    statement,
    caller,
    rowSecurity: sideOf(plans.under, [], rowsUnder),
    governed: {
      ...sideOf(plans.through, attributes, rowsThrough),
      sql: text,
      attributesMs: median(attributes),
    },
    sameRows: sameRows(rowsUnder, rowsThrough),
  };
}

interface Turns {
  readonly plans: { readonly under: ExplainedPlan[]; readonly through: ExplainedPlan[] };
  /** Time in ms to read the caller's attributes, one per round. */
  readonly attributes: readonly number[];
}

async function inTurns(
  { direct, reader, analyze }: Sides,
  under: StatementExecution,
  through: StatementExecution,
  readAttributes: (() => Promise<unknown>) | null,
): Promise<StatementOutcome<Turns>> {
  const plans: Turns['plans'] = { under: [], through: [] };
  const attributes: number[] = [];
  for (let round = 0; round < (analyze ? ROUNDS : 1); round += 1) {
    const one = await direct.explain(under, analyze);
    if (one.kind === 'failed') return { kind: 'failed', reason: `under row security: ${one.reason}` };
    const other = await reader.explain(through, analyze);
    if (other.kind === 'failed') return { kind: 'failed', reason: `as governed SQL: ${other.reason}` };
    plans.under.push(one.result);
    plans.through.push(other.result);
    attributes.push(readAttributes === null || !analyze ? 0 : await millis(readAttributes));
  }
  return { kind: 'done', result: { plans, attributes } };
}

/** @param extra time in ms to add to each execution, such as for reading attributes */
function sideOf(
  plans: readonly ExplainedPlan[],
  extra: readonly number[],
  rows: StatementOutcome<RowSetDigest> | null,
): Side {
  const rounds = plans.flatMap(({ ms }, i) => (ms === null ? [] : [ms + (extra[i] ?? 0)]));
  const plan = medianPlan(plans);
  return {
    ms: rounds.length === 0 ? null : median(rounds),
    rounds,
    cost: plan.cost,
    rows: rows?.kind === 'done' ? rows.result.rows : null,
    plan,
  };
}

function sameRows(
  one: StatementOutcome<RowSetDigest> | null,
  other: StatementOutcome<RowSetDigest> | null,
): boolean | null {
  if (one?.kind !== 'done' || other?.kind !== 'done') return null;
  return one.result.rows === other.result.rows && one.result.digest === other.result.digest;
}

/** Removes values that were sampled from rows from an error message. */
function hidden(message: string, values: readonly string[]): string {
  return values
    .filter((value) => value !== '')
    .reduce((text, value) => text.replace(wordsOf(value), '…'), message);
}

function wordsOf(value: string): RegExp {
  return new RegExp(
    `(?<!\\w)${value.replace(/[^\w]/g, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`)}(?!\\w)`,
    'gu',
  );
}

async function millis(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function medianPlan(plans: readonly ExplainedPlan[]): ExplainedPlan {
  const sorted = [...plans].sort((a, b) => (a.ms ?? a.cost) - (b.ms ?? b.cost));
  const found = sorted[Math.floor(sorted.length / 2)];
  if (found === undefined) throw new Error('no plan');
  return found;
}

/** A statement as the gateway sends it to the database for one caller, or the reason for a refusal. */
type GovernedSql =
  | {
      readonly kind: 'governed';
      readonly sql: string;
      /** Values of `$1`, `$2`, … in text format. */
      readonly values: readonly (string | null)[];
      /** Types of the values, as OIDs. */
      readonly types: readonly number[];
      /** Reads the caller's attributes from entities, as each request does; null if the caller needs none. */
      readonly readAttributes: (() => Promise<unknown>) | null;
    }
  | { readonly kind: 'refused'; readonly reason: string };

/** Compiles raw SQL for the caller of a token, in the same way as a request to the service. */
async function governedStatement(service: Service, token: string, text: string): Promise<GovernedSql> {
  const call = {
    requestId: randomUUID(),
    surface: 'rest',
    credentials: { kind: 'bearer', token, address: '127.0.0.1' },
  } as const;
  const question = { ...call, body: { kind: 'sql', text }, parameterOids: [] } as const;
  try {
    const { plan, caller } = await explainPlan(service, question, null, new AbortController().signal);
    const { sql, slots } = emit(plan);
    const bound = slotValues(slots, new Map(), { parts: service, caller, parameters: [] });
    return {
      kind: 'governed',
      sql,
      values: bound.map(({ bytes }) => (bytes === null ? null : Buffer.from(bytes).toString('utf8'))),
      types: slots.map((slot: Slot) => oidOf(slot.type)),
      readAttributes: service.tableAttributes.needs(caller)
        ? async () => service.tableAttributes.complete(caller)
        : null,
    };
  } catch (error) {
    if (error instanceof QueryError) return { kind: 'refused', reason: `${error.code} ${error.message}` };
    throw error;
  }
}
