import { quoteIdentifier, ready } from 'osl-compiler';
import { identifier } from 'osl-compiler/sql-text';
import { sql } from '../../../src/base/sql.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import { type Manifest, tableName } from '../../../src/model/manifest/index.js';
import { connectorUrl } from '../../../src/service/connector-url.js';
import { usage } from '../../exit.js';
import { counted, print, printJson, visible } from '../../output.js';
import { cutTo, formatTable } from '../../table.js';
import { DEFAULT_SEARCH_PATH, schemasFor, searchPathOf } from '../catalog/catalog.js';
import {
  type ComparedCaller,
  comparedCallers,
  mayHaveRows,
  rolesOfPolicy,
  subjectOf,
  withServedFiles,
} from '../compare/callers.js';
import {
  type CheckedDatabase,
  type DatabaseFlags,
  type FolderModel,
  loadFolder,
  urlOf,
  withDatabase,
} from '../database.js';
import { importedPolicy } from '../import/draft.js';
import {
  compareStatement,
  type Sides,
  type SkippedStatement,
  type StatementComparison,
  underRowSecurity,
} from './comparison.js';
import {
  type ExplainedComparison,
  explained,
  figure,
  type Leakproofness,
  operatorsIn,
  type SpeedReason,
} from './reasons.js';
import { SpeedSession, withoutValues } from './session.js';
import { type GivenStatement, recordedStatements, statementsIn } from './statements.js';
import { type ColumnSample, readyStatement } from './values.js';

export interface RlsSpeedFlags extends DatabaseFlags {
  readonly callers?: string;
  readonly sample: number;
  readonly statements?: string;
  readonly limit: number;
  readonly timeout: number;
  readonly analyze: boolean;
  readonly json?: boolean;
}

/**
 * Compares the time of statements under row security with the time of the same statements as governed SQL, and reports
 * the reasons that the plans show.
 *
 * @throws Failure for invalid flags, a database that cannot be reached and statements that cannot be read; the errors
 * of `loadModel` and `openService`
 */
export async function runRlsSpeed(folder: string, flags: RlsSpeedFlags): Promise<void> {
  const results = await rlsSpeed(folder, flags);
  if (flags.json === true) printJson(speedJson(results, flags.statements === undefined));
  else print(speedText(results));
}

async function rlsSpeed(folder: string, flags: RlsSpeedFlags): Promise<readonly SpeedResult[]> {
  await ready();
  const url = await urlOf(flags);
  const model = await loadFolder(folder);
  const readerUrl = await gatewayUrl(model.manifest.connectors);
  return withDatabase(url, flags, async (database, system) => {
    const input = await inputOf(system, database, model, flags);
    const results = await compareAll({ ...input, database, model }, [url, readerUrl], flags);
    const plans = results.flatMap((one) =>
      one.kind === 'compared' ? [one.rowSecurity.plan.root, one.governed.plan.root] : [],
    );
    const leakproofness = await leakproofnessOf(system, operatorsIn(plans));
    return results.map((one) => (one.kind === 'compared' ? explained(one, database, leakproofness) : one));
  });
}

interface Input {
  readonly statements: readonly GivenStatement[];
  readonly callers: readonly ComparedCaller[];
  /** The subject of each caller in the policy. */
  readonly subjects: readonly object[];
}

async function inputOf(
  system: SystemEngine,
  database: CheckedDatabase,
  model: FolderModel,
  flags: RlsSpeedFlags,
): Promise<Input> {
  const { manifest, snapshot } = model;
  const { attributes } = importedPolicy({ database, manifest, tenant: snapshot.tenant });
  const roles = rolesOfPolicy(database, snapshot);
  const all = await comparedCallers(system, model, attributes, roles, flags);
  const callers = flags.callers === undefined ? all.filter(mayHaveRows) : all;
  const tables = new Set([...manifest.catalog.relations.values()].map(tableName));
  const statements =
    flags.statements === undefined
      ? await recordedStatements(system, database, roles, (table) => tables.has(table), flags.limit)
      : statementsIn(flags.statements);
  return { statements, callers, subjects: callers.map((caller) => subjectOf(caller, attributes)) };
}

interface SpeedWork extends Input {
  readonly database: CheckedDatabase;
  readonly model: FolderModel;
}

async function compareAll(
  { statements, callers, subjects, database, model }: SpeedWork,
  [url, readerUrl]: readonly [string, string],
  { timeout, analyze }: RlsSpeedFlags,
): Promise<readonly (StatementComparison | SkippedStatement)[]> {
  const results: (StatementComparison | SkippedStatement)[] = [];
  const { manifestFile, policyFile } = model;
  const manifest = { raw_sql: { allow: rawTables(model.manifest) } };
  const served = { manifestFile, policyFile, maxRows: 1, subjects, manifest };
  const direct = await SpeedSession.open(url, timeout * 1_000);
  try {
    const reader = await SpeedSession.open(readerUrl, timeout * 1_000);
    try {
      await withServedFiles(served, async ({ service, token }) => {
        const sides: Sides = { direct, reader, service, analyze };
        for (const statement of statements)
          results.push(...(await ofCallers(sides, statement, callers, token, database)));
      });
    } finally {
      await reader.close();
    }
  } finally {
    await direct.close();
  }
  return results;
}

/** Tables that raw SQL can name: they are the source of exactly one entity and have no dot in their name. */
function rawTables({ catalog }: Manifest): readonly string[] {
  const tables = [...catalog.relations.values()];
  const times = (name: string): number => tables.filter((table) => tableName(table) === name).length;
  return tables
    .filter((table) => !`${table.schema}${table.table}`.includes('.') && times(tableName(table)) === 1)
    .map((table) => `${table.connector}.${tableName(table)}`);
}

/** The URL of the gateway's login, with which governed SQL runs. @throws Failure */
async function gatewayUrl(connectors: Manifest['connectors']): Promise<string> {
  const [connector, another] = [...connectors.values()];
  const variable = connector?.urlEnv ?? null;
  if (variable === null || another !== undefined)
    throw usage('osl rls speed compares one database: the manifest must have one connector of kind postgres');
  const url = await connectorUrl(process.env, variable);
  if (url === null)
    throw usage(
      `governed SQL runs as the gateway's role: set ${variable} to its URL (reader.sql creates it)`,
    );
  return url;
}

async function ofCallers(
  sides: Sides,
  statement: GivenStatement,
  callers: readonly ComparedCaller[],
  token: (caller: number) => Promise<string>,
  database: CheckedDatabase,
): Promise<readonly (StatementComparison | SkippedStatement)[]> {
  const results: (StatementComparison | SkippedStatement)[] = [];
  for (const [i, caller] of callers.entries()) {
    if (statement.role !== null && statement.role !== caller.role) continue;
    const role = [...database.catalog.roles.values()].find(({ name }) => name === caller.role);
    const searchPath = role === undefined ? null : searchPathOf(role);
    const sample: ColumnSample = (table, column) => {
      const [name, schema, of] = [column, table.schema, table.name].map(quoteIdentifier);
      const text = `SELECT ${name}::text FROM ${schema}.${of} WHERE ${name} IS NOT NULL LIMIT 1`;
      return sides.direct.sample(underRowSecurity(text, caller, null));
    };
    const schemas = schemasFor(caller.role, searchPath ?? DEFAULT_SEARCH_PATH);
    const prepared = await readyStatement(statement, database, schemas, sample);
    results.push(await compareStatement(sides, statement, caller, await token(i), searchPath, prepared));
  }
  if (results.length === 0)
    results.push({ kind: 'not compared', statement, caller: null, reason: 'there is no caller of its role' });
  return results;
}

/** Looks up operators and functions by name, and whether they are leakproof (`pg_proc.proleakproof`). */
export async function leakproofnessOf(
  system: SystemEngine,
  names: ReadonlySet<string>,
): Promise<readonly Leakproofness[]> {
  const rows = await system.query(
    sql`select o.oprname::text as name, pg_catalog.format_type(o.oprleft, null) as type, p.proname::text as procedure,
               p.proleakproof as leakproof
          from pg_catalog.pg_operator o join pg_catalog.pg_proc p on p.oid = o.oprcode where o.oprname = any ($1)
        union all
        select p.proname::text, '', p.proname::text, p.proleakproof
          from pg_catalog.pg_proc p where p.proname = any ($1)`,
    [[...names]],
  );
  return rows.map((row) => ({
    name: String(row['name']),
    type: String(row['type']),
    procedure: String(row['procedure']),
    leakproof: row['leakproof'] === true,
  }));
}

type SpeedResult = ExplainedComparison | SkippedStatement;

const WIDTH = 60;

/** The result as data for `--json`; the statements and plans contain no values. */
function speedJson(results: readonly SpeedResult[], isRecorded: boolean) {
  return {
    statements: results.map((result) => {
      if (!('compared' in result)) {
        const { statement, caller, reason } = result;
        return {
          statement: statementText(statement),
          calls: statement.calls,
          caller: caller?.name ?? null,
          compared: false,
          reason,
        };
      }
      const { compared, faster, ratio, reasons } = result;
      const { statement, caller, rowSecurity, governed, sameRows } = compared;
      return {
        statement: statementText(statement),
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

/** Formats results for the terminal: a table, the reasons for each line, then skipped statements. */
function speedText(results: readonly SpeedResult[]): string {
  const explained = results.filter((result): result is ExplainedComparison => 'compared' in result);
  const rest = results.filter((result): result is SkippedStatement => !('compared' in result));
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
      shortened(statement),
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

function linesOf(faster: ExplainedComparison['faster'], reasons: readonly SpeedReason[]): readonly string[] {
  if (faster === 'about equal') return ['about equal'];
  const slow = faster === 'governed' ? 'row security' : 'governed SQL';
  if (reasons.length === 0) return [`${slow} takes longer, and the plans do not tell why`];
  return [`${slow} takes longer:`, ...reasons.map(({ text }) => `  ${text}`)];
}

function refusalLine({ statement, caller, reason }: SkippedStatement): string {
  const who =
    caller === null
      ? statement.role === null
        ? ''
        : ` (${identifier(statement.role)})`
      : ` (${caller.name})`;
  return visible(`  ${shortened(statement)}${who}: ${reason}`);
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

/** The statement without literals, since literals written by an application may be values of rows. */
function statementText({ text }: GivenStatement): string {
  return withoutValues(text).trim();
}

function shortened(statement: GivenStatement): string {
  return cutTo(statementText(statement).replace(/\s+/g, ' '), WIDTH, '…');
}
