import { existsSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ready } from 'osl-compiler';
import type { Connector, Manifest } from '../../../src/model/manifest/index.js';
import { usage } from '../../exit.js';
import { counted, note, printJson } from '../../output.js';
import { loadFolder, requireKnown } from '../database.js';
import { sourceText } from '../import/caller-value.js';
import { AttributeSources, type SettingsForm, statedSources } from './attribute-sources.js';
import { type ExportedRowSecurity, exportedRowSecurity } from './design.js';
import { dropScript, exportScript, leftText } from './script.js';

export interface RlsExportFlags {
  readonly out?: string;
  readonly drop?: boolean;
  readonly connector?: string;
  readonly settings: SettingsForm;
  readonly attributes?: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

/** @throws Failure for invalid flags or a file that must not be overwritten; the errors of `loadModel` */
export async function runRlsExport(folder: string, flags: RlsExportFlags): Promise<void> {
  await ready();
  const { manifest, snapshot } = await loadFolder(folder);
  const stated = flags.attributes === undefined ? [] : statedSources(flags.attributes);
  const sources = new AttributeSources(snapshot.document, stated, flags.settings);
  const exported = exportedRowSecurity(connectorOf(manifest, flags), manifest, snapshot, sources);
  const sql = flags.drop === true ? dropScript(exported) : exportScript(exported);
  if (flags.out !== undefined) write(flags.out, sql, flags);
  if (flags.json === true)
    printJson({ ...exportResult(exported), ...(flags.out === undefined ? { sql } : { file: flags.out }) });
  else {
    if (flags.out === undefined) process.stdout.write(sql);
    if (flags.drop !== true) note(exportText(exported));
  }
}

function connectorOf({ connectors }: Manifest, { connector }: RlsExportFlags): Connector {
  if (connector !== undefined) requireKnown('connector', connector, [...connectors.keys()]);
  const [first, another] = connector === undefined ? [...connectors.values()] : [connectors.get(connector)];
  if (first === undefined) throw usage('the manifest has no connector');
  if (another !== undefined)
    throw usage(`row security is for one database: --connector ${[...connectors.keys()].join(' or ')}`);
  return first;
}

function write(file: string, sql: string, { force }: RlsExportFlags): void {
  const path = resolve(process.cwd(), file);
  if (existsSync(path) && force !== true) throw usage(`${path} would be overwritten: --force does that`);
  writeFileSync(path, sql);
}

/** The result of an export, as data for `--json`. */
function exportResult({ connector, version, roles, tables, attributes, left }: ExportedRowSecurity) {
  return {
    connector,
    policy: version,
    roles,
    tables: tables.map(({ schema, table, roles: on }) => ({
      table: `${schema}.${table}`,
      roles: on.map(({ role, columns, rows, denied, apart }) => ({
        role,
        columns,
        policies: rows.length,
        denied,
        ...(apart.length > 0 && { not_with: apart }),
      })),
    })),
    attributes: attributes.map(({ name, source, list }) => ({ name, from: sourceText(source), list })),
    left,
  };
}

function exportText({ roles, tables, attributes, left }: ExportedRowSecurity): string {
  const policies = tables.flatMap(({ roles: on }) => on.flatMap(({ rows }) => rows)).length;
  const lines = [
    `Exported ${counted(policies, 'policy', 'policies')} on ${counted(tables.length, 'table', 'tables')} for ${roles.join(', ') || 'no role'}.`,
    ...(attributes.length === 0 ? [] : ['', 'Values of callers:']),
    ...attributes.map(
      ({ name, source, list }) => `  ${name}: ${sourceText(source)}${list ? ', a list' : ''}`,
    ),
    ...(left.length === 0 ? [] : ['', 'Not expressed by row security:']),
    ...left.map((one) => `  ${leftText(one)}`),
  ];
  return lines.join('\n');
}
