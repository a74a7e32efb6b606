import { join, resolve } from 'node:path';
import { quoteIdentifier, ready } from 'osl-compiler';
import { nameFrom, tableName } from '../../../src/model/manifest/index.js';
import { connectorUrl } from '../../../src/service/connector-url.js';
import { loadModel } from '../../../src/service/model.js';
import { usage } from '../../exit.js';
import { print, printJson } from '../../output.js';
import type { Role } from '../catalog/catalog.js';
import { type CheckedDatabase, checkedDatabase } from '../checked-database.js';
import { attributesOfCaller, type ComparedCaller, callersIn } from '../compare/callers.js';
import { sampledCallers } from '../compare/sampled-callers.js';
import { withServedFiles } from '../compare/served-files.js';
import { catalogOf, type DatabaseFlags, openDatabase, scopeOf, urlOf } from '../database.js';
import { schemasOf } from '../function-body.js';
import { importedPolicy } from '../import/draft.js';
import {
  type Compared,
  compareStatement,
  type NotCompared,
  type Sides,
  underRowSecurity,
} from './comparison.js';
import { leakproofnessOf } from './leakproofness.js';
import {
  attributesReason,
  type Leakproofness,
  operatorsIn,
  reasonsFor,
  type StatementTest,
  testsOf,
  untold,
} from './reasons.js';
import { type Explained, figure, type SpeedResult, speedJson, speedText } from './report.js';
import { SpeedSession } from './session.js';
import { type GivenStatement, recordedStatements, selectIn, statementsIn } from './statements.js';
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
 * Compares the time of statements under row security with that of the same statements as governed SQL, and names the
 * reasons that the plans tell.
 *
 * @throws Failure for wrong flags, a database that cannot be reached and statements that cannot be read; the errors of
 *   `loadModel` and `openService`
 */
export async function runRlsSpeed(folder: string, flags: RlsSpeedFlags): Promise<void> {
  const results = await rlsSpeed(folder, flags);
  if (flags.json === true) printJson(speedJson(results, flags.statements === undefined));
  else print(speedText(results));
}

/** The comparisons of `runRlsSpeed`. */
export async function rlsSpeed(folder: string, flags: RlsSpeedFlags): Promise<readonly SpeedResult[]> {
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
    const { attributes } = importedPolicy({ database, manifest, tenant: snapshot.tenant });
    const roles = database.roles
      .filter(({ name }) => snapshot.roles.has(nameFrom(name)))
      .map(({ name }) => name);
    const callers =
      flags.callers === undefined
        ? (
            await sampledCallers(survey.system, { manifest, snapshot }, attributes, roles, flags.sample)
          ).filter(hasValues)
        : callersIn(flags.callers);
    const tables = [...manifest.catalog.relations.values()];
    const names = new Set(tables.map(tableName));
    const statements =
      flags.statements === undefined
        ? await recordedStatements(survey.system, database, roles, (table) => names.has(table), flags.limit)
        : statementsIn(flags.statements);
    const served = {
      ...files,
      maxRows: 1,
      subjects: callers.map((caller) => ({
        ceiling: [nameFrom(caller.role)],
        attributes: attributesOfCaller(caller, attributes),
      })),
      manifest: { raw_sql: { allow: tables.map((table) => `${table.connector}.${tableName(table)}`) } },
    };
    const results: (Compared | NotCompared)[] = [];
    const timeoutMs = flags.timeout * 1_000;
    const direct = await SpeedSession.open(url, timeoutMs);
    const reader = await SpeedSession.open(readerUrl, timeoutMs);
    try {
      await withServedFiles(served, async ({ service, token }) => {
        const sides: Sides = { direct, reader, service, analyze: flags.analyze };
        for (const statement of statements)
          results.push(...(await ofCallers(sides, statement, callers, token, database)));
      });
    } finally {
      await Promise.all([direct.close(), reader.close()]);
    }
    const plans = results.flatMap((r) =>
      r.kind === 'compared' ? [r.rowSecurity.plan.root, r.governed.plan.root] : [],
    );
    const leakproofness = await leakproofnessOf(survey.system, operatorsIn(plans));
    return results.map((result) =>
      result.kind === 'compared' ? explained(result, database, leakproofness) : result,
    );
  } finally {
    survey.close();
  }
}

/** The URL of the gateway's login, by which governed SQL runs. @throws Failure */
async function gatewayUrl(
  connectors: Awaited<ReturnType<typeof loadModel>>['manifest']['connectors'],
): Promise<string> {
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

/** A caller without values sees what everybody sees. */
function hasValues({ settings, claims, name }: ComparedCaller): boolean {
  return Object.keys(settings).length + Object.keys(claims).length > 0 || !name.endsWith(' without values');
}

async function ofCallers(
  sides: Sides,
  statement: GivenStatement,
  callers: readonly ComparedCaller[],
  token: (caller: number) => Promise<string>,
  database: CheckedDatabase,
): Promise<readonly (Compared | NotCompared)[]> {
  const results: (Compared | NotCompared)[] = [];
  for (const [i, caller] of callers.entries()) {
    if (statement.role !== null && statement.role !== caller.role) continue;
    const role = [...database.catalog.roles.values()].find(({ name }) => name === caller.role);
    const searchPath = searchPathOf(role);
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

const SEARCH_PATH = 'search_path=';

/** The search_path that ALTER ROLE gives a role; null if it has none. */
function searchPathOf(role: Role | undefined): readonly string[] | null {
  const own = role?.settings.find((setting) => setting.startsWith(SEARCH_PATH));
  if (own === undefined) return null;
  return schemasOf(own.slice(SEARCH_PATH.length)).map((name) =>
    name === '$user' ? (role?.name ?? name) : name,
  );
}

/** Below this ratio, two times are about equal. */
const EQUAL = 1.3;

function explained(
  compared: Compared,
  database: CheckedDatabase,
  leakproofness: readonly Leakproofness[],
): Explained {
  const { rowSecurity, governed } = compared;
  const [theirs, ours] = [rowSecurity.ms ?? rowSecurity.cost, governed.ms ?? governed.cost];
  const ratio = theirs / ours;
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
  // If the statement alone takes no longer, its plan is no reason.
  const alone = ours - attributesMs > EQUAL * theirs ? reasonsFor(through, under, context) : null;
  const rest =
    alone?.length === 0 && reading.length > 0 ? [untold('the statement itself takes longer, too')] : [];
  return { compared, faster: 'row security', ratio, reasons: [...(alone ?? []), ...reading, ...rest] };
}

function testsIn({ text }: GivenStatement): readonly StatementTest[] {
  const parsed = selectIn(text);
  return parsed.kind === 'select' ? testsOf(parsed.node) : [];
}
