import type { parse } from 'osl-compiler';
import { error } from '../../../wire/index.js';

type Node = ReturnType<typeof parse>['node'];
export type ExplainNode = Extract<Node, { ExplainStmt: unknown }>['ExplainStmt'];
type Option = NonNullable<ExplainNode['options']>[number];

/** What a plan is told in. */
export type PlanFormat = 'text' | 'json';

const ON: ReadonlySet<string> = new Set(['', 'true', 'on', '1']);
const OFF: ReadonlySet<string> = new Set(['false', 'off', '0']);
/** They ask for what Postgres measures or estimates: a governed plan has none of it, so they change nothing. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
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

/** The format that the options of an EXPLAIN ask for, checked as Postgres does. @throws WireError */
export function planFormat({ options = [] }: ExplainNode): PlanFormat {
  let format: PlanFormat = 'text';
  for (const option of options) {
    if (!('DefElem' in option)) continue;
    const name = option.DefElem.defname ?? '';
    const value = optionText(option);
    if (name === 'format') format = knownFormat(value);
    else if (name === 'analyze' || WITHOUT_EFFECT.has(name)) requireBoolean(name, value);
    else throw error('42601', `unrecognized EXPLAIN option "${name}"`);
    if (name === 'analyze' && !OFF.has(value)) throw noAnalyze();
  }
  return format;
}

function knownFormat(value: string): PlanFormat {
  if (value === 'text' || value === 'json') return value;
  if (value === 'xml' || value === 'yaml')
    throw error('0A000', `EXPLAIN in the format ${value} is not supported`, { hint: 'use text or json' });
  throw error('22023', `unrecognized value for EXPLAIN option "format": "${value}"`);
}

function requireBoolean(name: string, value: string): void {
  if (!ON.has(value) && !OFF.has(value)) throw error('42601', `${name} requires a Boolean value`);
}

function noAnalyze(): Error {
  return error('0A000', 'EXPLAIN ANALYZE is not supported', {
    detail: 'What the database measures counts rows that row filters hide.',
    hint: 'EXPLAIN tells the governed plan; an admin is told that of the database on the other surfaces',
  });
}

/** The value as text in lower case; the empty text where none is given. */
function optionText(option: Option): string {
  const arg = 'DefElem' in option ? option.DefElem.arg : undefined;
  if (arg === undefined) return '';
  if ('String' in arg) return (arg.String.sval ?? '').toLowerCase();
  if ('Integer' in arg) return String(arg.Integer.ival ?? 0);
  if ('Boolean' in arg) return String(arg.Boolean.boolval ?? false);
  return '?';
}
