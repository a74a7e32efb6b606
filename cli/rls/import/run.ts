import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ready } from 'osl-compiler';
import type { Survey } from '../../../src/engine/index.js';
import { isName, nameFrom } from '../../../src/model/manifest/index.js';
import { MANIFEST_SCHEMA } from '../../../src/model/manifest/schema/manifest.js';
import { POLICY_SCHEMA } from '../../../src/model/manifest/schema/policy.js';
import { usage } from '../../exit.js';
import { note } from '../../output.js';
import { manifestYaml, policyYaml } from '../../proposal/index.js';
import { catalogOf, type DatabaseFlags, openDatabase, scopeOf, urlOf } from '../database.js';
import { type ImportedDatabase, importDatabase } from './import-database.js';
import { importResult, importText } from './report.js';

export interface RlsImportFlags extends DatabaseFlags {
  readonly tenant?: string;
  readonly urlEnv: string;
  readonly reader: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

const FILES = ['manifest.yaml', 'policy.yaml', 'reader.sql'] as const;

/** @throws Failure for wrong flags, a database that cannot be reached, and files that must not be overwritten */
export async function runRlsImport(folder: string, flags: RlsImportFlags): Promise<void> {
  const dir = resolve(process.cwd(), folder);
  const there = FILES.filter((name) => existsSync(join(dir, name)));
  if (there.length > 0 && flags.force !== true)
    throw usage(`${there.join(' and ')} in ${dir} would be overwritten: --force does that`);
  const url = await urlOf(flags);
  const tenant = flags.tenant ?? nameFrom(decodeURIComponent(new URL(url).pathname.slice(1)) || 'main');
  if (!isName(tenant)) throw usage(`--tenant: \`${tenant}\` is no name`);
  await ready();
  const survey = await openDatabase(url);
  const imported = await read(survey, flags, tenant).finally(() => survey.close());
  mkdirSync(dir, { recursive: true });
  const texts = {
    'manifest.schema.json': `${JSON.stringify(MANIFEST_SCHEMA, null, 2)}\n`,
    'policy.schema.json': `${JSON.stringify(POLICY_SCHEMA, null, 2)}\n`,
    'manifest.yaml': manifestYaml(imported.manifest.document, new Set(), new Map()),
    'policy.yaml': policyYaml(imported.policy, 'osl rls import', (role, grant) => {
      const policies = imported.origins.of(role, grant);
      return policies === null ? null : `by policy ${policies}`;
    }),
    'reader.sql': imported.readerSql(flags.reader),
  };
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(dir, name), text);
  const files = FILES.map((name) => join(folder, name));
  if (flags.json === true)
    process.stdout.write(`${JSON.stringify(importResult(imported, files), null, 2)}\n`);
  else note(importText(imported, files));
}

/** @throws Failure if a part of the catalog cannot be read: what it has could restrict rows */
async function read(survey: Survey, flags: RlsImportFlags, tenant: string): Promise<ImportedDatabase> {
  const catalog = await catalogOf(survey);
  const [unread] = catalog.unread;
  if (unread !== undefined)
    throw usage(`${catalog.reader} may not read the ${unread.part}: ${unread.reason}`);
  return importDatabase(survey, catalog, { scope: scopeOf(flags, catalog), tenant, urlEnv: flags.urlEnv });
}
