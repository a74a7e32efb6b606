import type { PolicyDocument } from '../policy/document.js';
import { type Manifest, type ManifestDocument, tableName } from '../src/model/manifest/index.js';
import type { Loss } from './account.js';
import type { ColumnDraft, EntityDraft, ImportDraft, PolicyDraft } from './draft.js';
import { members } from './names.js';
import type { ImportOptions } from './options.js';
import { schemaOf } from './options.js';
import { type Origins, settle } from './settle.js';
import { report, type SourceFile, type SourcePlace } from './source.js';
import { settleTypes } from './types.js';

/** Result of an import: a manifest that loads, and a report of what it lacks. */
export interface ImportResult {
  readonly document: ManifestDocument;
  readonly manifest: Manifest;
  /** Without subjects, so nobody is granted anything. */
  readonly policy: PolicyDocument;
  readonly losses: readonly Loss[];
}

const MAIN = 'main';

/** Builds the manifest of a draft. Parts that would not load are reported and left out. */
export function assemble(
  draft: ImportDraft,
  roles: PolicyDraft,
  files: readonly SourceFile[],
  options: ImportOptions,
): ImportResult {
  for (const entity of draft.entities) entity.settleComputed();
  settleTypes(draft, options);
  const { document, origins } = draftDocument(draft, options);
  const { document: settled, manifest } = settle(document, origins);
  const policy = roles.policy(manifest.tenant ?? MAIN, manifest.catalog);
  return { document: settled, manifest, policy, losses: files.flatMap((f) => f.account.losses()) };
}

function hasKey(entity: EntityDraft): boolean {
  if (entity.key.length > 0 && entity.key.every((k) => entity.columns.some((c) => c.name === k))) return true;
  const reason = `\`${entity.name}\` has no primary key; name it with --key`;
  report(entity.place, 'lost', reason);
  return false;
}

/** Document of a draft, with the origin of each member. Types must be settled. */
export function draftDocument(
  draft: ImportDraft,
  options: ImportOptions,
): { document: ManifestDocument; origins: Origins } {
  const entities = draft.entities.filter(hasKey);
  const origins = new Map<string, SourcePlace>();
  const section = <T>(key: string, list: readonly { name: string; document: T; place: SourcePlace }[]) => {
    for (const { name, place } of list) origins.set(`${key}/${name}`, place);
    return members(list.map(({ name, document }) => [name, document] as const));
  };
  const named = entities.map((e) => ({ name: e.name, document: entityDocument(e, options), place: e.place }));
  for (const e of entities)
    for (const c of e.computedColumns) origins.set(`entities/${e.name}/computed/${c.name}`, c.place);
  const terms = draft.terms.map((t) => {
    const synonyms = t.synonyms.length === 0 ? {} : { synonyms: t.synonyms };
    return { name: t.term, document: { refers_to: t.refersTo, ...synonyms }, place: t.place };
  });
  const document: ManifestDocument = {
    version: 1,
    tenant: options.tenant ?? MAIN,
    connectors: connectorsOf(entities, options),
    entities: section('entities', named),
    ...(draft.relationships.length > 0 && { relationships: section('relationships', draft.relationships) }),
    ...(draft.metrics.length > 0 && { metrics: section('metrics', draft.metrics) }),
    ...(terms.length > 0 && { lexicon: section('lexicon', terms) }),
  };
  return { document, origins };
}

function tableKey({ table }: EntityDraft, options: ImportOptions): string {
  return tableName({ schema: schemaOf(table, options), table: table.table });
}

function entityDocument(entity: EntityDraft, options: ImportOptions): ManifestDocument['entities'][string] {
  const links = [...entity.links].filter((l) => !entity.key.includes(l));
  const columns = entity.columns.map((c) => {
    const renamed = c.physical === c.name ? {} : { column: c.physical };
    const said = c.description === null ? {} : { description: c.description };
    const declared = { ...renamed, ...said };
    return [c.name, Object.keys(declared).length === 0 ? null : declared] as const;
  });
  const computed = entity.computedColumns.map(({ name, expression, description }) => {
    return [name, { expression, ...(description !== null && { description }) }] as const;
  });
  return {
    ...(entity.description !== null && { description: entity.description }),
    source: { connector: entity.table.connector, table: tableKey(entity, options) },
    primary_key: entity.key,
    ...(links.length > 0 && { entity_key_columns: [...entity.key, ...links] }),
    columns: members(columns),
    ...(entity.computedColumns.length > 0 && { computed: members(computed) }),
    ...(entity.time !== null && { time_dimension: entity.time }),
  };
}

function connectorsOf(
  entities: readonly EntityDraft[],
  options: ImportOptions,
): ManifestDocument['connectors'] {
  const names = [...new Set([options.connector, ...entities.map((e) => e.table.connector)])];
  return members(
    names.map((name) => {
      const own = entities.filter((e) => e.table.connector === name);
      const url = name === options.connector ? 'DATABASE_URL' : variableFor(name);
      const kind = options.kind === 'pglite' ? { kind: options.kind } : { kind: options.kind, url_env: url };
      return [name, { ...kind, tables: tablesOf(own, options) }] as const;
    }),
  );
}

/** Environment variable with a connector's URL; such names must begin with a letter. */
function variableFor(connector: string): string {
  const upper = connector.toUpperCase();
  return `${/^[A-Z]/.test(upper) ? upper : `DB${upper}`}_URL`;
}

type ConnectorTables = ManifestDocument['connectors'][string]['tables'];

function tablesOf(entities: readonly EntityDraft[], options: ImportOptions): ConnectorTables {
  const tables = new Map<string, Map<string, ConnectorTables[string]['columns'][string]>>();
  for (const entity of entities) {
    const key = tableKey(entity, options);
    const columns = tables.get(key) ?? new Map();
    tables.set(key, columns);
    for (const c of entity.columns)
      if (!columns.has(c.physical)) columns.set(c.physical, columnOf(c, entity));
  }
  return members([...tables].map(([key, columns]) => [key, { columns: members([...columns]) }] as const));
}

function columnOf(column: ColumnDraft, entity: EntityDraft): ConnectorTables[string]['columns'][string] {
  const nullable = column.nullable === false && !entity.key.includes(column.name) ? { nullable: false } : {};
  const label = column.sensitivity === null ? {} : { sensitivity: column.sensitivity };
  const labels = column.labels === null ? {} : { labels: column.labels };
  const stored = column.stored === null ? {} : { stored: column.stored, ...labels };
  return { type: column.declared ?? column.type ?? 'text', ...stored, ...label, ...nullable };
}
