import { join, resolve } from 'node:path';
import { quoteIdentifier, ready } from 'osl-compiler';
import type { PolicySnapshot } from '../../../policy/index.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import { type Manifest, nameFrom, tableName } from '../../../src/model/manifest/index.js';
import { connectorUrl } from '../../../src/service/connector-url.js';
import { loadModel } from '../../../src/service/model.js';
import { usage } from '../../exit.js';
import { print, printJson } from '../../output.js';
import { type CheckedDatabase, checkedDatabase } from '../checked-database.js';
import { attributesOfCaller, type ComparedCaller, callersIn } from '../compare/callers.js';
import { sampledCallers } from '../compare/sampled-callers.js';
import { withServedFiles } from '../compare/served-files.js';
import { catalogOf, type DatabaseFlags, openDatabase, scopeOf, urlOf } from '../database.js';
import { importedPolicy } from '../import/draft.js';
import { searchPathOf } from '../search-path.js';
import {
  compareStatement,
  type NotCompared,
  type Sides,
  type StatementComparison,
  underRowSecurity,
} from './comparison.js';
import { leakproofnessOf } from './leakproofness.js';
import { operatorsIn } from './reasons.js';
import { type SpeedResult, speedJson, speedText } from './report.js';
import { SpeedSession } from './session.js';
import { type GivenStatement, recordedStatements, statementsIn } from './statements.js';
import { type ColumnSample, readyStatement } from './values.js';
import { explained } from './verdict.js';

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
 * Compares the time of statements under row security with that of the same statements as governed SQL, and reports
 * the reasons that the plans show.
 *
 * @throws Failure for wrong flags, a database that cannot be reached and statements that cannot be read; the errors of
 *   `loadModel` and `openService`
 */
export async function runRlsSpeed(folder: string, flags: RlsSpeedFlags): Promise<void> {
  const results = await rlsSpeed(folder, flags);
  if (flags.json === true) printJson(speedJson(results, flags.statements === undefined));
  else print(speedText(results));
}

async function rlsSpeed(folder: string, flags: RlsSpeedFlags): Promise<readonly SpeedResult[]> {
  await ready();
  const dir = resolve(process.cwd(), folder);
  const url = await urlOf(flags);
  const files = { manifestFile: join(dir, 'manifest.yaml'), policyFile: join(dir, 'policy.yaml') };
  const { manifest, snapshot } = await loadModel(files.manifestFile, files.policyFile, null);
  if (snapshot === null) throw usage(`${files.policyFile} is no policy`);
  const readerUrl = await gatewayUrl(manifest.connectors);
  const survey = await openDatabase(url);
  try {
    const catalog = await catalogOf(survey);
    const database = checkedDatabase(catalog, scopeOf(flags, catalog));
    const input = await inputOf(survey.system, database, { manifest, snapshot }, flags);
    const results = await compareAll({ ...input, database, files, manifest }, [url, readerUrl], flags);
    const plans = results.flatMap((one) =>
      one.kind === 'compared' ? [one.rowSecurity.plan.root, one.governed.plan.root] : [],
    );
    const leakproofness = await leakproofnessOf(survey.system, operatorsIn(plans));
    return results.map((one) => (one.kind === 'compared' ? explained(one, database, leakproofness) : one));
  } finally {
    survey.close();
  }
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
  model: { readonly manifest: Manifest; readonly snapshot: PolicySnapshot },
  flags: RlsSpeedFlags,
): Promise<Input> {
  const { manifest, snapshot } = model;
  const { attributes } = importedPolicy({ database, manifest, tenant: snapshot.tenant });
  const roles = database.roles.map(({ name }) => name).filter((name) => snapshot.roles.has(nameFrom(name)));
  const callers =
    flags.callers === undefined
      ? (await sampledCallers(system, model, attributes, roles, flags.sample)).filter(mayHaveRows)
      : callersIn(flags.callers);
  const tables = new Set([...manifest.catalog.relations.values()].map(tableName));
  const statements =
    flags.statements === undefined
      ? await recordedStatements(system, database, roles, (table) => tables.has(table), flags.limit)
      : statementsIn(flags.statements);
  const subjects = callers.map((caller) => ({
    ceiling: [nameFrom(caller.role)],
    attributes: attributesOfCaller(caller, attributes),
  }));
  return { statements, callers, subjects };
}

/** False for the sampled caller without values, who sees what everybody sees. */
function mayHaveRows({ name }: ComparedCaller): boolean {
  return !name.endsWith(' without values');
}

interface SpeedWork extends Input {
  readonly database: CheckedDatabase;
  readonly files: { readonly manifestFile: string; readonly policyFile: string };
  readonly manifest: Manifest;
}

async function compareAll(
  { statements, callers, subjects, database, files, manifest }: SpeedWork,
  [url, readerUrl]: readonly [string, string],
  { timeout, analyze }: RlsSpeedFlags,
): Promise<readonly (StatementComparison | NotCompared)[]> {
  const results: (StatementComparison | NotCompared)[] = [];
  const served = { ...files, maxRows: 1, subjects, manifest: { raw_sql: { allow: rawTables(manifest) } } };
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

/** Tables that raw SQL can name: each the source of one entity, without a dot in its name. */
function rawTables({ catalog }: Manifest): readonly string[] {
  const tables = [...catalog.relations.values()];
  const times = (name: string): number => tables.filter((table) => tableName(table) === name).length;
  return tables
    .filter((table) => !`${table.schema}${table.table}`.includes('.') && times(tableName(table)) === 1)
    .map((table) => `${table.connector}.${tableName(table)}`);
}

/** The URL of the gateway's login, by which governed SQL runs. @throws Failure */
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
): Promise<readonly (StatementComparison | NotCompared)[]> {
  const results: (StatementComparison | NotCompared)[] = [];
  for (const [i, caller] of callers.entries()) {
    if (statement.role !== null && statement.role !== caller.role) continue;
    const role = [...database.catalog.roles.values()].find(({ name }) => name === caller.role);
    const searchPath = role === undefined ? null : searchPathOf(role);
    const sample: ColumnSample = (table, column) => {
      const [name, schema, of] = [column, table.schema, table.name].map(quoteIdentifier);
      const text = `SELECT ${name}::text FROM ${schema}.${of} WHERE ${name} IS NOT NULL LIMIT 1`;
      return sides.direct.sample(underRowSecurity(text, caller, null));
    };
    const prepared = await readyStatement(statement, database, searchPath ?? ['public'], sample);
    results.push(await compareStatement(sides, statement, caller, await token(i), searchPath, prepared));
  }
  if (results.length === 0)
    results.push({ kind: 'not compared', statement, caller: null, reason: 'there is no caller of its role' });
  return results;
}
