import { isDeepStrictEqual } from 'node:util';
import type { PolicyDocument } from '../../policy/document.js';
import {
  compileManifest,
  type Manifest,
  type ManifestDocument,
  manifestShape,
  pointer,
  policyShape,
} from '../../src/model/manifest/index.js';
import { assemble, draftDocument, type ImportResult, loadablePart, type Origins } from '../assemble.js';
import { PolicyDraft, policyFault, type RelationshipBody } from '../draft.js';
import { members } from '../names.js';
import type { ModelImportOptions } from '../options.js';
import { report, type SourceFile, type SourceMapping, type SourcePlace } from '../source.js';
import { assignTypes } from '../types.js';
import { type Core, readCore, readModels } from './core.js';
import { jsonObject, VENDOR } from './document.js';
import { coreOf, withoutLogins } from './export.js';

/**
 * Imports Apache Ossie (Open Semantic Interchange) files. A file exported by this gateway yields the original manifest
 * plus the changes made since the export.
 *
 * @throws ManifestProblems if a file has the wrong shape
 */
export function importOssie(files: readonly SourceFile[], options: ModelImportOptions): ImportResult {
  const models = readModels(files);
  const carried = models.map((m) => ({ model: m, carried: readEmbeddedModel(m) }));
  const [only, more] = carried;
  const kept = more === undefined ? only?.carried?.manifest.document.entities : undefined;
  const core = readCore(models, options, kept ?? null);
  for (const file of files) file.check();
  if (only?.carried != null && more === undefined)
    return fromExtension(core, only.model, only.carried, files, options);
  for (const { carried: c } of carried)
    if (c !== null)
      report(
        c.place,
        'lost',
        'of several models only the cores are read, and no extension of this gateway',
        'high',
      );
  const tenant = options.tenant ?? core.tenant;
  return assemble(core.draft, new PolicyDraft(), files, { ...options, tenant });
}

function fromExtension(
  { draft }: Core,
  model: Core['models'][number],
  carried: EmbeddedModel,
  files: readonly SourceFile[],
  options: ModelImportOptions,
): ImportResult {
  const same = findUnchanged(model, carried);
  for (const entity of draft.entities) entity.settleComputed();
  assignTypes(draft, options);
  const { document: core, origins } = draftDocument(draft, options);
  const whole = { document: carried.manifest.document, origins: { get: () => carried.place } };
  const both = same.all ? whole : merge(core, origins, carried, same);
  const named = options.tenant === null ? both.document : { ...both.document, tenant: options.tenant };
  const { document, manifest } = loadablePart(named, both.origins);
  const policy = policyOf(carried, manifest, options);
  const losses = files.flatMap((f) => f.tracker.losses());
  // Losses covered by the extension are not reported.
  return { document, manifest, policy, losses: losses.filter((l) => !isCovered(l, same)) };
}

/** An unchanged metric may expose a column that was removed from its dataset, so what is about access is reported. */
function isCovered(loss: ImportResult['losses'][number], same: ReturnType<typeof findUnchanged>): boolean {
  return loss.severity !== 'high' && isWithin(loss.path, same) && !loss.path.includes('/custom_extensions/');
}

/** Returns the embedded policy if it is requested and valid; otherwise one that grants nothing. */
function policyOf(carried: EmbeddedModel, manifest: Manifest, options: ModelImportOptions): PolicyDocument {
  const none = new PolicyDraft().policy(manifest.tenant ?? 'main', manifest.catalog);
  if (carried.policy === null) {
    if (options.withPolicy)
      report(carried.place, 'lost', 'the file carries no policy; nobody is granted anything', 'high');
    return none;
  }
  if (!options.withPolicy) {
    const reason = 'the file carries a policy, which was left out; --with-policy takes it';
    report(carried.place, 'lost', reason, 'high');
    return none;
  }
  const fault = faultOf(carried.policy, manifest);
  if (fault === null) {
    const policy = withoutLogins(carried.policy as PolicyDocument); // checked by the schema
    return options.tenant === null ? policy : { ...policy, tenant: options.tenant };
  }
  report(carried.place, 'lost', `the policy that the file carries does not fit: ${fault}`, 'high');
  return none;
}

function faultOf(policy: unknown, manifest: Manifest): string | null {
  const [problem] = policyShape(policy);
  if (problem !== undefined) return problem.message;
  return policyFault(policy as PolicyDocument, manifest.catalog); // the schema has checked it
}

/** Parts of a file outside this gateway's extension that have not changed since the export. */
interface UnchangedParts {
  readonly datasets: ReadonlySet<string>;
  readonly relationships: ReadonlySet<string>;
  readonly metrics: ReadonlySet<string>;
  /** JSON Pointers to these parts in the file. */
  readonly paths: ReadonlySet<string>;
  /** True if everything is unchanged, and nothing was added or removed. */
  readonly all: boolean;
}

type CoreSection = 'datasets' | 'relationships' | 'metrics';
type CoreItem = Readonly<Record<string, unknown>> & { readonly name: string };

function findUnchanged(model: SourceMapping, carried: EmbeddedModel): UnchangedParts {
  const { bridges } = carried.manifest;
  const before = coreOf(carried.manifest).model;
  const paths = new Set<string>();
  let all = model.members['name'] === before.name;
  const compare = (kind: CoreSection, keep: (item: CoreItem) => boolean): ReadonlySet<string> => {
    // Both lists contain objects with a name: `old` was just exported, and `now` was checked when it was read.
    const old = new Map(((before[kind] ?? []) as readonly unknown[]).map((o) => [(o as CoreItem).name, o]));
    const now = (model.members[kind] ?? []) as readonly CoreItem[];
    const same = new Set<string>();
    for (const [i, item] of now.entries()) {
      if (!isDeepStrictEqual(comparable(item), comparable(old.get(item.name))) || !keep(item)) continue;
      same.add(item.name);
      paths.add(pointer([...model.path, kind, i]));
    }
    all &&= same.size === old.size && now.length === old.size;
    return same;
  };
  const datasets = compare('datasets', () => true);
  // A link counts as unchanged only if both of its datasets do. The links of an unchanged bridge are part of it.
  const relationships = compare(
    'relationships',
    (r) => datasets.has(`${r['from']}`) && (datasets.has(`${r['to']}`) || bridges.has(`${r['from']}`)),
  );
  const metrics = compare('metrics', () => true);
  return { datasets, relationships, metrics, paths, all };
}

/** Returns a copy of a JSON value for comparison, without other vendors' extensions, nulls and empty lists. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, member]): readonly (readonly [string, unknown])[] => {
    const kept = key === 'custom_extensions' && Array.isArray(member) ? member.filter(isOwn) : member;
    if (kept === null || (Array.isArray(kept) && kept.length === 0)) return [];
    return [[key, comparable(kept)]];
  });
  return Object.fromEntries(entries);
}

function isOwn(extension: unknown): boolean {
  return (
    typeof extension === 'object' &&
    extension !== null &&
    'vendor_name' in extension &&
    extension.vendor_name === VENDOR
  );
}

/** True if `path` is in an unchanged part of the file. */
function isWithin(path: string, { paths }: UnchangedParts): boolean {
  const steps = path.split('/');
  // Matches `/semantic_model/0/datasets/3` and everything below it.
  return paths.has(steps.slice(0, 5).join('/'));
}

/**
 * The embedded manifest with later changes to the file applied: unchanged objects are taken from the extension, which
 * is complete, and all others from the core, which is current, with the members that only the extension can express.
 */
function merge(
  core: ManifestDocument,
  origins: Origins,
  carried: EmbeddedModel,
  same: UnchangedParts,
): { readonly document: ManifestDocument; readonly origins: Origins } {
  const old = carried.manifest.document;
  const before = coreOf(carried.manifest).model;
  const isNew = (key: string): boolean => !isWithin(pointer(origins.get(key)?.path ?? []), same);
  const section = <T>(
    key: string,
    kept: Readonly<Record<string, T>> | undefined,
    keep: (name: string) => boolean,
    now: Readonly<Record<string, T>> | undefined,
    complete: (name: string, now: T, before: T) => T = (_name, one) => one,
  ): Record<string, T> => {
    const changed = Object.entries(now ?? {})
      .filter(([name]) => isNew(`${key}/${name}`))
      .map(([name, one]) => {
        const before = kept?.[name];
        return [name, before === undefined ? one : complete(name, one, before)] as const;
      });
    const taken = new Set(changed.map(([name]) => name));
    const old = Object.entries(kept ?? {}).filter(([name]) => keep(name) && !taken.has(name));
    return members([...old, ...changed]);
  };
  const expressed = new Set((before.metrics ?? []).map((m) => m.name));
  const out: Record<string, unknown> = {
    ...old,
    connectors: connectors(old.connectors, core.connectors),
    entities: section(
      'entities',
      old.entities,
      (n) => same.datasets.has(n),
      core.entities,
      (name, now, before) => entityWith(name, now, before, carried.place),
    ),
    relationships: section(
      'relationships',
      old.relationships,
      (n) => same.relationships.has(n),
      core.relationships,
      (_name, now, before) => relationshipWith(now, before),
    ),
    bridges: section('bridges', old.bridges, (n) => same.datasets.has(n), undefined),
    metrics: section(
      'metrics',
      old.metrics,
      (n) => same.metrics.has(n) || !expressed.has(n),
      core.metrics,
      (_name, now, before) => ({ ...picked(before, ['deprecated', 'format']), ...now }),
    ),
    lexicon: section('lexicon', old.lexicon, (term) => meansTheSame(term, carried, same), core.lexicon),
  };
  for (const name of Object.keys(old.bridges ?? {})) {
    const place = origins.get(`entities/${name}`);
    if (place === undefined || same.datasets.has(name)) continue;
    report(place, 'approximated', `bridge \`${name}\` was changed, so it was read as an entity`);
  }
  for (const key of ['relationships', 'bridges', 'metrics', 'lexicon'])
    if (Object.keys(out[key] as object).length === 0) delete out[key];
  const fallback: Origins = { get: (key) => (isNew(key) ? origins.get(key) : undefined) ?? carried.place };
  return { document: out as unknown as ManifestDocument, origins: fallback }; // built from sections of both documents
}

type EntityBody = ManifestDocument['entities'][string];

/** Adds the members of an entity that the core cannot express; computed columns whose name it uses are reported. */
function entityWith(name: string, now: EntityBody, before: EntityBody, place: SourcePlace): EntityBody {
  const columns = Object.keys(now.columns);
  const taken = new Set([...columns, ...Object.keys(now.computed ?? {})].map((c) => c.toLowerCase()));
  const computed = Object.entries(before.computed ?? {}).filter(([column]) => {
    const isFree = !taken.has(column.toLowerCase());
    if (!isFree) report(place, 'lost', `computed column \`${name}.${column}\`: a field has its name`);
    return isFree;
  });
  const all = { ...members(computed), ...now.computed };
  const joins = (before.entity_key_columns ?? []).filter((c) => columns.includes(c));
  return {
    ...picked(before, ['deprecated', 'composition', 'legs', 'derived', 'cache']),
    ...now,
    ...(Object.keys(all).length > 0 && { computed: members(Object.entries(all)) }),
    ...(joins.length > 0 && {
      entity_key_columns: [...new Set([...(now.entity_key_columns ?? now.primary_key ?? []), ...joins])],
    }),
  };
}

/** Adds the members of a relationship that the core cannot express; its kind, if it links the same columns. */
function relationshipWith(now: RelationshipBody, before: RelationshipBody): RelationshipBody {
  const ends = ({ from, to }: RelationshipBody) => [[from].flat(), [to].flat()];
  if (isDeepStrictEqual(ends(now), ends(before))) return before;
  return { ...picked(before, ['description', 'deprecated']), ...now };
}

function picked<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Partial<Pick<T, K>> {
  const out: Partial<Pick<T, K>> = {};
  for (const key of keys) if (from[key] !== undefined) out[key] = from[key];
  return out;
}

/** True if a term of the extension means an unchanged object. Facets occur only in the extension, so never change. */
function meansTheSame(term: string, { manifest }: EmbeddedModel, same: UnchangedParts): boolean {
  const meant = manifest.lexicon.get(term);
  if (meant === undefined) return false;
  const owner = meant.refersTo.split('.')[0] ?? '';
  if (meant.kind === 'facet') return true;
  return meant.kind === 'metric' ? same.metrics.has(owner) : same.datasets.has(owner);
}

type Connectors = ManifestDocument['connectors'];

/** Keeps the tables and columns declared in the extension and adds those that only the core mentions. */
function connectors(old: Connectors, now: Connectors): Connectors {
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  return members(
    [...names].flatMap((name) => {
      const [kept, added] = [old[name], now[name]];
      if (kept === undefined) {
        const used = added !== undefined && Object.keys(added.tables).length > 0;
        return used ? [[name, added] as const] : [];
      }
      const tables = new Set([...Object.keys(kept.tables), ...Object.keys(added?.tables ?? {})]);
      const both = [...tables].map((table) => {
        const columns = { ...added?.tables[table]?.columns, ...kept.tables[table]?.columns };
        return [
          table,
          kept.tables[table] !== undefined && added?.tables[table] === undefined
            ? kept.tables[table]
            : { columns: members(Object.entries(columns)) },
        ] as const;
      });
      return [[name, { ...kept, tables: members(both) }] as const];
    }),
  );
}

/** Manifest and optional policy in a file exported by this gateway. */
interface EmbeddedModel {
  readonly manifest: Manifest;
  /** The policy, not yet validated; null if the file has none. */
  readonly policy: unknown;
  readonly place: SourcePlace;
}

/** Reads the extension of a model; null if it is missing or does not load, which is reported. */
function readEmbeddedModel(model: SourceMapping): EmbeddedModel | null {
  for (const part of model.parts('custom_extensions')) {
    if (part.text('vendor_name') !== VENDOR) continue;
    const data = jsonObject(part.text('data') ?? '');
    const document = data?.['format'] === 1 ? plain(data['manifest'], 0) : null;
    const compiled =
      manifestShape(document).length > 0 ? null : compileManifest(document as ManifestDocument); // just checked
    if (compiled?.ok === true) {
      return {
        manifest: compiled.manifest,
        policy: plain(data?.['policy'] ?? null, 0),
        place: part.at('data'),
      };
    }
    part.note('data', 'lost', 'the extension holds no manifest that loads: only the core was read', 'high');
  }
  return null;
}

const DEEPEST = 32;

/** Copies a JSON value for use in a manifest: without prototypes, and with null for values nested too deeply. */
function plain(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return depth > DEEPEST ? null : value;
  if (Array.isArray(value)) return value.map((v) => plain(v, depth + 1));
  return members(Object.entries(value).map(([k, v]) => [k, plain(v, depth + 1)] as const));
}
