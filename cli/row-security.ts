import { ready } from 'osl-compiler';
import { surveyPostgres, UpstreamFailure } from '../src/engine/index.js';
import type { Connector } from '../src/model/manifest/index.js';
import {
  clearingScript,
  ForeignRowSecurity,
  MissingPrivilege,
  type RowSecurityDesign,
  type RowSecurityStatus,
  rowSecurityScript,
  rowSecurityStatus,
  writeRowSecurity,
} from '../src/model/row-security/index.js';
import type { Model } from '../src/model/served-model.js';
import {
  connectorUrl,
  describeConnectFault,
  readUrlFile,
  withoutPassword,
} from '../src/service/connector-url.js';
import { tenantKeys } from '../src/service/keys.js';
import { loadServed } from '../src/service/model.js';
import { rowSecurityDesign, rowSecurityKey } from '../src/service/row-security.js';
import { EXIT, Failure, usage } from './exit.js';
import { type ServerFlags, settingsOfModel } from './flags.js';
import { counted, note, print, printJson, visible } from './output.js';

export interface RowSecurityFlags extends ServerFlags {
  readonly connector?: string;
  readonly write?: true;
  readonly sql?: true;
  readonly drop?: true;
  readonly url?: string;
  readonly urlFile?: string;
}

/**
 * Compares, prints, writes or drops the row-security policies of each connector that is configured to have them.
 * @throws Failure
 */
export async function runRowSecurity(flags: RowSecurityFlags): Promise<void> {
  const settings = settingsOfModel(flags);
  await ready();
  const model = await loadServed(settings);
  const connectors = chooseConnectors(model, flags);
  const reports: RowSecurityReport[] = [];
  for (const connector of connectors) {
    const key = rowSecurityKey(tenantKeys(settings.dataDir, settings.keysDir), connector.name);
    const reader = await governedUrl(connector);
    const survey = await connectTo(reader);
    try {
      const design = rowSecurityDesign(connector, survey.report.role, model);
      if (flags.sql) {
        printScript(design, key);
        continue;
      }
      if (flags.drop) await asOwner(connector, flags, (url) => drop(url));
      else if (flags.write && !isCorrect(await rowSecurityStatus(survey.system, design, key)))
        await asOwner(connector, flags, (url) => write(url, design, key));
      reports.push(reportOf(connector, design, await rowSecurityStatus(survey.system, design, key)));
    } finally {
      survey.close();
    }
  }
  if (!flags.sql) printReports(reports, flags);
}

interface RowSecurityReport extends RowSecurityStatus {
  readonly connector: string;
  readonly role: string;
  readonly version: string;
  readonly tables: number;
}

function reportOf(
  { name }: Connector,
  { role, version, tables }: RowSecurityDesign,
  standing: RowSecurityStatus,
): RowSecurityReport {
  return { connector: name, role, version, tables: tables.size, ...standing };
}

function isCorrect({ faults }: RowSecurityStatus): boolean {
  return faults.length === 0;
}

function chooseConnectors({ manifest }: Model, { connector, url, urlFile, write, drop }: RowSecurityFlags) {
  const all = [...manifest.connectors.values()];
  const asked = all.filter((c) => (connector === undefined ? c.rowSecurity : c.name === connector));
  const [first] = asked;
  if (first === undefined) {
    throw usage(
      connector === undefined
        ? 'no connector says `row_security: true`; --connector names one that does not yet'
        : `there is no connector \`${connector}\`; the manifest declares ${all.map((c) => c.name).join(', ')}`,
    );
  }
  const embedded = asked.find((c) => c.kind === 'pglite');
  if (embedded !== undefined) throw usage(`connector \`${embedded.name}\` is the embedded engine`);
  const owner = url !== undefined || urlFile !== undefined;
  if (owner && asked.length > 1) throw usage('--url is for one database: name its --connector');
  if (owner && !write && !drop) throw usage('--url goes with --write or --drop');
  return asked;
}

async function governedUrl({ name, urlEnv }: Connector): Promise<string> {
  const url = await connectorUrl(process.env, urlEnv ?? '');
  if (url === null) throw usage(`connector \`${name}\` takes its URL from ${urlEnv}, which is not set`);
  return url;
}

async function connectTo(url: string) {
  try {
    return await surveyPostgres(url);
  } catch (error) {
    throw usage(`${withoutPassword(url)}: ${describeConnectFault(error)}`);
  }
}

async function asOwner(
  { name, urlEnv }: Connector,
  { url, urlFile }: RowSecurityFlags,
  work: (url: string) => Promise<void>,
): Promise<void> {
  const owner =
    url ??
    (urlFile === undefined ? await connectorUrl(process.env, `${urlEnv}_SYSTEM`) : readUrlFile(urlFile));
  const hint = `give the URL of the role that owns the tables: --url, --url-file or ${urlEnv}_SYSTEM`;
  if (owner === null) throw failed(`connector \`${name}\`: policies are written by the tables' owner`, hint);
  try {
    await work(owner);
  } catch (error) {
    if (error instanceof MissingPrivilege) throw failed(`connector \`${name}\`: ${error.message}`, hint);
    if (error instanceof ForeignRowSecurity)
      throw failed(`connector \`${name}\`: ${error.message}`, 'nothing was changed');
    if (error instanceof UpstreamFailure)
      throw failed(`connector \`${name}\`: ${error.message}`, adviceFor(error));
    throw error;
  }
}

const DEPENDENT_OBJECTS_STILL_EXIST = '2BP01';

function adviceFor({ sqlstate }: UpstreamFailure): string {
  return sqlstate === DEPENDENT_OBJECTS_STILL_EXIST
    ? 'schema `osl_row_security` contains an object that this command did not create, or an object elsewhere needs one of it: move that first; nothing was changed'
    : 'nothing was changed';
}

function failed(message: string, hint: string): Failure {
  return new Failure(EXIT.usage, `error: ${visible(message)}\n  hint: ${hint}`, { hint });
}

async function write(url: string, design: RowSecurityDesign, key: Uint8Array): Promise<void> {
  const owner = await connectTo(url);
  try {
    await writeRowSecurity(owner.system, design, key);
  } finally {
    owner.close();
  }
}

async function drop(url: string): Promise<void> {
  const owner = await connectTo(url);
  try {
    await owner.system.transaction(async (tx) => {
      for (const statement of clearingScript()) await tx.script(statement);
    });
  } finally {
    owner.close();
  }
}

function printScript(design: RowSecurityDesign, key: Uint8Array): void {
  note('this holds the key of the rights that statements carry: keep it as a secret');
  print(`begin;\n${rowSecurityScript(design, key).join(';\n')};\ncommit;`);
}

function printReports(reports: readonly RowSecurityReport[], { json, write, drop }: RowSecurityFlags): void {
  const stand = reports.every(isCorrect);
  if (json) printJson({ ok: stand, connectors: reports });
  else for (const report of reports) print(drop ? `${report.connector}: dropped` : textOf(report));
  if (write && stand && !json) note('a server that runs takes it up at its reload: kill -HUP, or a restart');
  if (!stand && !drop) process.exitCode = EXIT.failed;
}

function textOf({ connector, role, tables, version, faults, uncovered }: RowSecurityReport): string {
  const what = `${counted(tables, 'table', 'tables')}, role "${role}", version ${version}`;
  return [
    faults.length === 0 ? `${connector}: stands (${what})` : `${connector}: does not stand (${what})`,
    ...faults.map((fault) => `  ${visible(fault)}`),
    ...uncovered.map((name) => `  the rows of ${visible(name)} are not held: it is not a table`),
  ].join('\n');
}
