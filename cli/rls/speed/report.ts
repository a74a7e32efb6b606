import { identifier } from 'osl-compiler/sql-text';
import { counted, visible } from '../../output.js';
import { cutTo, formatTable } from '../../table.js';
import type { NotCompared, StatementComparison } from './comparison.js';
import { withoutValues } from './plan.js';
import type { Reason } from './reasons.js';
import { type ExplainedComparison, figure } from './verdict.js';

export type SpeedResult = ExplainedComparison | NotCompared;

const WIDTH = 60;

/** The result as data for `--json`; of plans and statements without values. */
export function speedJson(results: readonly SpeedResult[], isRecorded: boolean) {
  return {
    statements: results.map((result) => {
      if (!('compared' in result)) {
        const { statement, caller, reason } = result;
        return {
          statement: statement.text,
          calls: statement.calls,
          caller: caller?.name ?? null,
          compared: false,
          reason,
        };
      }
      const { compared, faster, ratio, reasons } = result;
      const { statement, caller, rowSecurity, governed, sameRows } = compared;
      return {
        statement: statement.text,
        calls: statement.calls,
        caller: caller.name,
        role: caller.role,
        compared: true,
        faster,
        ratio,
        same_rows: sameRows,
        reasons: reasons.map(({ kind, table, text }) => ({ kind, table, text })),
        row_security: sideJson(rowSecurity),
        governed: { ...sideJson(governed), attributes_ms: governed.attributesMs, sql: governed.sql },
      };
    }),
    from: isRecorded ? 'pg_stat_statements' : 'file',
  };
}

function sideJson({ ms, rounds, cost, rows, plan }: StatementComparison['rowSecurity']) {
  return { ms, rounds_ms: rounds, cost, rows, plan: plan.redacted };
}

/** A table for a person, then the reasons of each line, then what was not compared. */
export function speedText(results: readonly SpeedResult[]): string {
  const explained = results.filter((result): result is ExplainedComparison => 'compared' in result);
  const rest = results.filter((result): result is NotCompared => !('compared' in result));
  const parts: string[] = [];
  if (explained.length > 0) parts.push(tableOf(explained), explained.map(reasonLines).join('\n'));
  if (rest.length > 0) parts.push(['Not compared:', ...rest.map(refusalLine)].join('\n'));
  parts.push(summary(explained, rest.length));
  return parts.join('\n\n');
}

function tableOf(results: readonly ExplainedComparison[]): string {
  const timed = results.some(({ compared }) => compared.governed.ms !== null);
  const unit = timed ? 'ms' : 'cost';
  const right = (name: string) => ({ name, align: 'right' as const });
  const head = [
    right('#'),
    'caller',
    'statement',
    right('rows'),
    right(`row security ${unit}`),
    right(`governed ${unit}`),
    right('ratio'),
  ];
  const rows = results.map(({ compared, ratio }, i) => {
    const { caller, statement, rowSecurity, governed } = compared;
    return [
      String(i + 1),
      caller.name,
      shortened(statement.text),
      rowsText(compared),
      figure(rowSecurity.ms ?? rowSecurity.cost),
      figure(governed.ms ?? governed.cost),
      `${figure(ratio)}×`,
    ];
  });
  return formatTable(head, rows);
}

function rowsText({ rowSecurity, governed, sameRows }: StatementComparison): string {
  if (rowSecurity.rows === null || governed.rows === null) return '?';
  if (rowSecurity.rows !== governed.rows) return `${rowSecurity.rows}, ${governed.rows} governed`;
  return sameRows === false ? `${governed.rows}, not the same` : String(governed.rows);
}

function reasonLines({ faster, reasons }: ExplainedComparison, index: number): string {
  return linesOf(faster, reasons)
    .map((line, i) => `${i === 0 ? `${index + 1}.` : '  '} ${visible(line)}`)
    .join('\n');
}

function linesOf(faster: ExplainedComparison['faster'], reasons: readonly Reason[]): readonly string[] {
  if (faster === 'about equal') return ['about equal'];
  const slow = faster === 'governed' ? 'row security' : 'governed SQL';
  if (reasons.length === 0) return [`${slow} takes longer, and the plans do not tell why`];
  return [`${slow} takes longer:`, ...reasons.map(({ text }) => `  ${text}`)];
}

function refusalLine({ statement, caller, reason }: NotCompared): string {
  const who =
    caller === null
      ? statement.role === null
        ? ''
        : ` (${identifier(statement.role)})`
      : ` (${caller.name})`;
  return visible(`  ${shortened(statement.text)}${who}: ${reason}`);
}

function summary(results: readonly ExplainedComparison[], refused: number): string {
  const count = (faster: ExplainedComparison['faster']): number =>
    results.filter((one) => one.faster === faster).length;
  const differing = results.filter(({ compared }) => compared.sameRows === false).length;
  return (
    `${counted(results.length, 'comparison', 'comparisons')}: governed SQL faster in ${count('governed')}, ` +
    `row security in ${count('row security')}, about equal in ${count('about equal')}; ` +
    `other rows in ${differing}; ${refused} not compared`
  );
}

/** One line, without literals: those of an application may be values of rows. */
function shortened(text: string): string {
  return cutTo(withoutValues(text).replace(/\s+/g, ' ').trim(), WIDTH, '…');
}
