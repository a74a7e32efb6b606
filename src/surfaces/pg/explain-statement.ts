import { explain, type PlanExplanation } from 'osl-compiler';
import { error, type Portal, type WireStatement } from '../../../wire/index.js';
import { type DataQuestion, explainPlan, prepare, type QuestionBody } from '../../ask/index.js';
import { dataRow } from '../../engine/index.js';
import type { StatementNode } from './command.js';
import type { SessionParts } from './session-state.js';

const TYPE_OIDS = { text: 25, json: 114 } as const satisfies Record<PlanFormat, number>;

/**
 * Prepares `EXPLAIN [(options)] query` on data, which shows the governed plan, as `osl explain` does. Nothing is
 * executed, and the database's estimates are omitted since they count hidden rows. `question` is the text of the
 * explained query, with blanks in place of everything before it, so that positions of errors are right.
 *
 * @throws WireError
 */
export async function explainStatement(
  session: SessionParts,
  node: ExplainNode,
  question: string,
  parameterOids: readonly number[],
): Promise<WireStatement> {
  if (node.query === undefined || !('SelectStmt' in node.query))
    throw error('0A000', 'EXPLAIN takes a question: SELECT, WITH or VALUES');
  const format = planFormat(node);
  const { service, caller, records, state, running } = session;
  const body: QuestionBody = { kind: 'wire', text: question };
  const firstCall: DataQuestion = { ...caller.newCall(), body, parameterOids };
  const prepared = await records.translate(firstCall.requestId, question, () => prepare(service, firstCall));
  const pendingRecord = records.holdPrepared(firstCall, () => prepared.record());
  const explainLines = (): Promise<readonly string[]> => {
    state.block.requireUsable();
    const call = records.pending.release(pendingRecord) ? firstCall : caller.newCall();
    const dataQuestion: DataQuestion = { ...call, body, parameterOids, prepared };
    return running.cancellable((signal) =>
      records.translate(call.requestId, question, async () => {
        const { plan } = await explainPlan(service, dataQuestion, null, signal);
        const { objects, grants } = plan;
        const shownPlan = { plan: explain(plan), objects, grants };
        return format === 'json' ? [planDocument(shownPlan)] : planLines(shownPlan);
      }),
    );
  };
  return {
    parameterTypes: prepared.plan.clientOids,
    columns: [{ name: 'QUERY PLAN', typeOid: TYPE_OIDS[format], typeLength: -1, typeModifier: -1 }],
    open: () => linesPortal(explainLines),
  };
}

/** Creates a portal that returns one row per line; the lines are computed at the first fetch. */
function linesPortal(readLines: () => Promise<readonly string[]>): Portal {
  let lines: readonly string[] | null = null;
  return {
    async fetch(maxRows, rows) {
      lines ??= await readLines();
      const portion = maxRows === 0 ? lines : lines.slice(0, maxRows);
      for (const line of portion) await rows.write(dataRow([line]));
      lines = lines.slice(portion.length);
      return { suspended: lines.length > 0, tag: 'EXPLAIN' };
    },
    close: () => undefined,
  };
}

type ExplainNode = Extract<StatementNode, { ExplainStmt: unknown }>['ExplainStmt'];
type ExplainOption = NonNullable<ExplainNode['options']>[number];

type PlanFormat = 'text' | 'json';

const TRUE_VALUES: ReadonlySet<string> = new Set(['', 'true', 'on', '1']);
const FALSE_VALUES: ReadonlySet<string> = new Set(['false', 'off', '0']);
/** Options for measurements or estimates, which a governed plan does not have; accepted but ignored. */
const IGNORED_OPTIONS: ReadonlySet<string> = new Set([
  'verbose',
  'costs',
  'settings',
  'buffers',
  'timing',
  'wal',
  'summary',
  'generic_plan',
  'memory',
]);

/** Returns the requested output format after validating the options like Postgres. @throws WireError */
function planFormat({ options = [] }: ExplainNode): PlanFormat {
  let format: PlanFormat = 'text';
  for (const option of options) {
    if (!('DefElem' in option)) continue;
    const name = option.DefElem.defname ?? '';
    const value = optionText(option);
    if (name === 'format') format = parseFormat(value);
    else if (name === 'analyze' || IGNORED_OPTIONS.has(name)) requireBoolean(name, value);
    else throw error('42601', `unrecognized EXPLAIN option "${name}"`);
    if (name === 'analyze' && !FALSE_VALUES.has(value)) throw noAnalyze();
  }
  return format;
}

function parseFormat(value: string): PlanFormat {
  if (value === 'text' || value === 'json') return value;
  if (value === 'xml' || value === 'yaml')
    throw error('0A000', `EXPLAIN in the format ${value} is not supported`, { hint: 'use text or json' });
  throw error('22023', `unrecognized value for EXPLAIN option "format": "${value}"`);
}

function requireBoolean(name: string, value: string): void {
  if (!TRUE_VALUES.has(value) && !FALSE_VALUES.has(value))
    throw error('42601', `${name} requires a Boolean value`);
}

function noAnalyze(): Error {
  return error('0A000', 'EXPLAIN ANALYZE is not supported', {
    detail: 'What the database measures counts rows that row filters hide.',
    hint: 'EXPLAIN shows the governed plan; admins get that of the database from REST and the command line',
  });
}

function optionText(option: ExplainOption): string {
  const arg = 'DefElem' in option ? option.DefElem.arg : undefined;
  if (arg === undefined) return '';
  if ('String' in arg) return (arg.String.sval ?? '').toLowerCase();
  if ('Integer' in arg) return String(arg.Integer.ival ?? 0);
  return '?';
}

interface ShownPlan {
  readonly plan: PlanExplanation;
  /** Full names of the objects that the query reads; `grants` holds the ids of the grants that allow it. */
  readonly objects: readonly string[];
  readonly grants: readonly string[];
}

function planLines({ plan, objects, grants }: ShownPlan): readonly string[] {
  return [
    ...stepLines(plan, 0),
    ...(objects.length === 0 ? [] : [`Objects: ${objects.join(', ')}`]),
    ...(grants.length === 0 ? [] : [`Grants: ${grants.join(', ')}`]),
  ];
}

/** Builds the document for `FORMAT JSON`, with the members that plan viewers read: `Plan`, `Node Type`, `Plans`. */
function planDocument({ plan, objects, grants }: ShownPlan): string {
  return JSON.stringify([{ Plan: planNode(plan), Objects: objects, Grants: grants }], null, 2);
}

function stepLines({ step, detail, inputs }: PlanExplanation, depth: number): readonly string[] {
  const { object, ...others } = detail;
  const details = Object.entries(others).filter(([, value]) => hasContent(value));
  const lists = details.filter(([, value]) => Array.isArray(value));
  const scalars = details.filter(([, value]) => !Array.isArray(value));
  const indent = depth === 0 ? '' : `${'      '.repeat(depth - 1)}  ->  `;
  const childIndent = '      '.repeat(depth);
  const relation = object === undefined ? '' : ` on ${String(object)}`;
  const flags = scalars.length === 0 ? '' : `  (${scalars.map(scalarText).join(', ')})`;
  return [
    `${indent}${capitalize(step)}${relation}${flags}`,
    ...lists.map(([name, value]) => `${childIndent}  ${title(name)}: ${listText(value)}`),
    ...inputs.flatMap((input) => stepLines(input, depth + 1)),
  ];
}

function planNode({ step, detail, inputs }: PlanExplanation): Readonly<Record<string, unknown>> {
  const { object, ...others } = detail;
  const details = Object.entries(others).map(([name, value]) => [title(name), value]);
  return {
    'Node Type': capitalize(step),
    ...(object === undefined ? {} : { 'Relation Name': object }),
    ...Object.fromEntries(details),
    ...(inputs.length === 0 ? {} : { Plans: inputs.map(planNode) }),
  };
}

function hasContent(value: unknown): boolean {
  const isEmpty = Array.isArray(value) ? value.length === 0 : value === 0 || value === 'none';
  return value !== null && value !== false && !isEmpty;
}

function scalarText([name, value]: readonly [string, unknown]): string {
  const words = name.replaceAll('_', ' ');
  return value === true ? words : `${words}: ${typeof value === 'object' ? JSON.stringify(value) : value}`;
}

function listText(value: unknown): string {
  return Array.isArray(value) ? value.map(itemText).join(', ') : String(value);
}

/** Returns text like `email (masked)` if the column is masked in at least some rows. */
function itemText(item: unknown): string {
  if (typeof item !== 'object' || item === null) return String(item);
  const { name, masked } = item as { readonly name?: unknown; readonly masked?: unknown };
  if (name === undefined) return JSON.stringify(item);
  const maskText = masked === 'all' || masked === true ? 'masked' : `masked: ${String(masked)}`;
  return hasContent(masked) && masked !== undefined ? `${String(name)} (${maskText})` : String(name);
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function title(name: string): string {
  return name.split('_').map(capitalize).join(' ');
}
