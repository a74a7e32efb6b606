import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ready } from 'osl-compiler';
import { identifier } from 'osl-compiler/sql-text';
import type { Survey } from '../../../src/engine/index.js';
import { isName, nameFrom } from '../../../src/model/manifest/index.js';
import { MANIFEST_SCHEMA } from '../../../src/model/manifest/schema/manifest.js';
import { POLICY_SCHEMA } from '../../../src/model/manifest/schema/policy.js';
import { usage } from '../../exit.js';
import { counted, note, visible } from '../../output.js';
import { manifestYaml, policyYaml } from '../../proposal/index.js';
import { type DatabaseFlags, openDatabase, scopeOf, urlOf, wholeCatalogOf } from '../database.js';
import { sourceText } from './caller-value.js';
import { type ImportedDatabase, importDatabase } from './import-database.js';
import type { ImportNote } from './policy-filters.js';

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
  if (!isName(tenant)) throw usage(`--tenant: \`${tenant}\` is not a name`);
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

async function read(survey: Survey, flags: RlsImportFlags, tenant: string): Promise<ImportedDatabase> {
  const catalog = await wholeCatalogOf(survey);
  return importDatabase(survey, catalog, { scope: scopeOf(flags, catalog), tenant, urlEnv: flags.urlEnv });
}

/** The result of an import, as data for `--json`. */
export function importResult(
  { policy, attributes, notes, leftOut, manifest }: ImportedDatabase,
  files: readonly string[],
) {
  const withReasons = (...kinds: readonly ImportNote['kind'][]) =>
    kinds
      .flatMap((kind) => ofKind(notes, kind))
      .map(({ object, role, detail }) => ({ object, role, reason: detail }));
  return {
    files,
    roles: Object.entries(policy.roles).map(([role, { grants }]) => ({ role, grants: grants.length })),
    entities: manifest.manifest.entities.size,
    attributes: attributes.map(({ name, source, list }) => ({ name, from: sourceText(source), list })),
    attributes_from_entities: Object.keys(policy.attributes ?? {}),
    imported: ofKind(notes, 'imported').map(({ object, role }) => ({ object, role })),
    refused: [
      ...withReasons('refused'),
      ...leftOut.map(({ table, reason }) => ({ object: table, role: null, reason })),
    ],
    whole: withReasons('no row security', 'exempt'),
    views: ofKind(notes, 'view').map(({ object, role }) => ({ object, role })),
    changed: withReasons('changed'),
    nothing: withReasons('nothing visible'),
  };
}

function ofKind(notes: readonly ImportNote[], kind: ImportNote['kind']): readonly ImportNote[] {
  const own = notes.filter((note) => note.kind === kind);
  return [...new Map(own.map((note) => [JSON.stringify(note), note])).values()];
}

/** Formats the result of an import for the terminal. */
function importText(imported: ImportedDatabase, files: readonly string[]): string {
  const result = importResult(imported, files);
  const { roles, entities, attributes, refused, whole, views, changed, nothing } = result;
  const policies = new Set(result.imported.map(({ object }) => object)).size;
  const sections = [
    [
      `Imported ${counted(policies, 'policy', 'policies')} for ${roles.map(({ role }) => role).join(', ') || 'no role'}: ${counted(entities, 'entity', 'entities')}.`,
      `Written: ${files.join(', ')}`,
    ],
    list(
      'Attributes that subjects need, in `subjects` of policy.yaml or from their tokens (docs/identity.md):',
      attributes.map(({ name, from, list }) => `${name}: ${from}${list ? ', a list' : ''}`),
    ),
    list('Not imported, so these roles see less than in the database:', refused.map(line)),
    list('All rows, as in the database:', whole.map(line)),
    list(
      'Views whose rows depend on the caller, as entities over their tables:',
      views.map(({ object, role }) => visible(`${object} (${identifier(role)})`)),
    ),
    list('Columns of views that are masked or left out:', changed.map(line)),
    list('No rows, as in the database, or because of what is not imported:', nothing.map(line)),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

interface ReportedObject {
  readonly object: string;
  readonly role: string | null;
  readonly reason: string | null;
}

function line({ object, role, reason }: ReportedObject): string {
  return visible(`${object}${role === null ? '' : ` (${identifier(role)})`}: ${reason ?? ''}`);
}

function list(title: string, items: readonly string[]): readonly string[] {
  return items.length === 0 ? [] : [title, ...items.map((item) => `  ${item}`)];
}
