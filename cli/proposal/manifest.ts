import { type Column, identifier, isNumber, type Joins, type Relation } from 'osl-compiler';
import { type AdoptionCandidate, type CandidateLink, draftOf } from '../../src/model/discovery/index.js';
import {
  type FragmentDocument,
  isModelName,
  type Manifest,
  type ManifestDocument,
  ManifestProblems,
  parseManifest,
  tableName,
  withSuffix,
} from '../../src/model/manifest/index.js';
import { columnId, type ExcludedTable, tableOf } from './choose.js';
import { moneyOf } from './find-key.js';
import type { Treatments } from './labels.js';

/** Labels for masked columns: keys are hashed so that joins still work, everything else is redacted. */
export const LABEL = 'pii';
export const KEY_LABEL = 'pii_key';
export const CONNECTOR = 'db';

/** A manifest that compiles, both as a document and compiled. */
export interface DraftedManifest {
  readonly document: ManifestDocument;
  readonly manifest: Manifest;
  readonly leftOut: readonly ExcludedTable[];
  readonly lostLinks: readonly LostLink[];
}

export interface ManifestFrame {
  readonly tenant: string;
  readonly urlEnv: string;
  readonly rowSecurity: boolean;
  readonly joins: Joins;
}

/**
 * Drafts a manifest for `candidates`, each of which has a key. Tables that do not compile are left out, with the
 * reason. Requires `ready()` of osl-compiler.
 */
export function draftManifest(
  candidates: readonly AdoptionCandidate[],
  treatments: Treatments,
  frame: ManifestFrame,
): DraftedManifest {
  const leftOut: ExcludedTable[] = [];
  let rest = candidates;
  for (;;) {
    const drafted = attempt(rest, treatments, frame);
    if (drafted.ok) {
      const { document, manifest } = drafted;
      return { document, manifest, leftOut, lostLinks: lostLinks(rest, manifest) };
    }
    const faulty = rest.filter((c) => drafted.faults.has(tableOf(c)));
    if (faulty.length === 0) throw drafted.problems;
    leftOut.push(...faulty.map((c) => ({ table: tableOf(c), reason: drafted.faults.get(tableOf(c)) ?? '' })));
    rest = rest.filter((c) => !faulty.includes(c));
  }
}

interface CompiledDraft {
  readonly ok: true;
  readonly document: ManifestDocument;
  readonly manifest: Manifest;
}

type DraftAttempt =
  | CompiledDraft
  | { readonly ok: false; readonly faults: ReadonlyMap<string, string>; readonly problems: ManifestProblems };

/** Tries to compile a draft. Entities come first, because drafts of links and bridges need their targets. */
function attempt(
  candidates: readonly AdoptionCandidate[],
  treatments: Treatments,
  frame: ManifestFrame,
): DraftAttempt {
  const empty = compile(emptyDocument(frame), candidates);
  if (!empty.ok) return empty;
  const isBridge = (c: AdoptionCandidate): boolean => c.proposal === 'bridge';
  const alone = new Map(
    candidates.map((c) => [
      tableOf(c),
      draftOf({ ...c, proposal: 'entity', foreign_keys: [] }, empty.manifest),
    ]),
  );
  const entities = candidates
    .filter((c) => !isBridge(c))
    .flatMap((c) => alone.get(tableOf(c))?.fragment ?? []);
  const first = compile(merge(empty.document, entities), candidates);
  if (!first.ok) return first;
  const names = new Map(candidates.filter((c) => !isBridge(c)).map((c) => [tableOf(c), c.name]));
  const drafts = candidates.map((c) => {
    const linked = withEntities(c, names);
    const whole =
      !isBridge(c) || linked.foreign_keys.filter((f) => inKey(f, c)).every((f) => meets(f, first.manifest));
    const proposal = isBridge(c) && !whole ? ('association' as const) : c.proposal;
    return draftOf({ ...linked, proposal }, first.manifest).fragment;
  });
  const whole = compile(addLabels(merge(empty.document, drafts), candidates, treatments), candidates);
  return whole.ok ? addMetrics(whole, candidates) : whole;
}

function addMetrics(drafted: CompiledDraft, candidates: readonly AdoptionCandidate[]): DraftAttempt {
  const metrics = metricsFor(drafted.manifest);
  const all = compile({ ...drafted.document, metrics }, candidates);
  if (all.ok) return all;
  const faulty = new Set(all.problems.diagnostics.map(({ path }) => path.split('/')[2] ?? ''));
  const sound = Object.entries(metrics).filter(([name]) => !faulty.has(name));
  const some = compile({ ...drafted.document, metrics: Object.fromEntries(sound) }, candidates);
  return some.ok ? some : drafted;
}

type CandidateForeignKey = AdoptionCandidate['foreign_keys'][number];

function inKey({ columns }: CandidateForeignKey, { key }: AdoptionCandidate): boolean {
  return columns.every((c) => key.includes(c));
}

function meets({ references }: CandidateForeignKey, { catalog }: Manifest): boolean {
  const entity = references.entity === null ? undefined : catalog.relations.get(references.entity);
  if (entity === undefined) return false;
  const key = entity.primaryKey.map((k) => entity.columns.find((c) => c.name === k)?.physical);
  return key.length === references.columns.length && references.columns.every((c) => key.includes(c));
}

function withEntities(candidate: AdoptionCandidate, names: ReadonlyMap<string, string>): AdoptionCandidate {
  const foreign_keys = candidate.foreign_keys.map(({ references, ...link }) => {
    return { ...link, references: { ...references, entity: names.get(tableOf(references)) ?? null } };
  });
  return { ...candidate, foreign_keys };
}

function emptyDocument({ tenant, urlEnv, rowSecurity, joins }: ManifestFrame): ManifestDocument {
  const guard = rowSecurity ? { row_security: true } : {};
  const connectors = { [CONNECTOR]: { kind: 'postgres' as const, url_env: urlEnv, ...guard, tables: {} } };
  return { version: 1, tenant, features: { joins }, connectors, entities: {} };
}

type FragmentMembers = Record<string, unknown>;

function merge(base: ManifestDocument, fragments: readonly FragmentDocument[]): ManifestDocument {
  const tables = plain();
  const sections = { entities: plain(), relationships: plain(), bridges: plain() };
  for (const fragment of fragments) {
    Object.assign(tables, fragment.connectors?.[CONNECTOR]?.tables);
    Object.assign(sections.entities, fragment.entities);
    Object.assign(sections.bridges, fragment.bridges);
    for (const [name, link] of Object.entries(fragment.relationships ?? {})) {
      sections.relationships[freeName(name, sections.relationships)] = link;
    }
  }
  const connector = base.connectors[CONNECTOR];
  const filled = Object.entries(sections).filter(
    ([name, s]) => name === 'entities' || Object.keys(s).length > 0,
  );
  return {
    ...base,
    connectors: { [CONNECTOR]: { ...connector, tables } },
    ...Object.fromEntries(filled),
  } as unknown as ManifestDocument; // fragments are partial documents; the compiler checks the whole
}

function freeName(name: string, taken: FragmentMembers): string {
  const used = new Set(Object.keys(taken).map((n) => n.toLowerCase()));
  if (!used.has(name.toLowerCase())) return name;
  for (let n = 2; ; n++) {
    const numbered = withSuffix(name, `_${n}`);
    if (!used.has(numbered.toLowerCase())) return numbered;
  }
}

/** Creates an object without a prototype, because names come from a database and may be `__proto__`. */
function plain(): FragmentMembers {
  return Object.create(null) as FragmentMembers;
}

/** Adds labels to masked columns, and allows joins on every key column. */
function addLabels(
  document: ManifestDocument,
  candidates: readonly AdoptionCandidate[],
  treatments: Treatments,
): ManifestDocument {
  const connector = document.connectors[CONNECTOR];
  const keys = keysOf(candidates);
  const tables = plain();
  const entities = Object.assign(plain(), document.entities);
  for (const candidate of candidates) {
    const columns = plain();
    for (const [name, column] of Object.entries(connector?.tables[tableOf(candidate)]?.columns ?? {})) {
      const id = columnId(candidate, name);
      const label = keys.has(id) ? { sensitivity: KEY_LABEL } : { pii: true };
      columns[name] = treatments.get(id) === 'masked' ? { ...column, ...label } : column;
    }
    tables[tableOf(candidate)] = { columns };
    const entity = document.entities[candidate.name];
    if (entity !== undefined)
      entities[candidate.name] = sealKeys(entity, (column) => keys.has(columnId(candidate, column)));
  }
  const connectors = { [CONNECTOR]: { ...connector, tables } };
  return { ...document, connectors, entities } as unknown as ManifestDocument; // a partial document, as above
}

function keysOf(candidates: readonly AdoptionCandidate[]): ReadonlySet<string> {
  return new Set(
    candidates.flatMap((c) => [
      ...c.key.map((column) => columnId(c, column)),
      ...c.foreign_keys.flatMap(({ columns, references }) => [
        ...columns.map((column) => columnId(c, column)),
        ...references.columns.map((column) => columnId(references, column)),
      ]),
    ]),
  );
}

type EntityBody = ManifestDocument['entities'][string];

function sealKeys(entity: EntityBody, isKey: (physical: string) => boolean): EntityBody {
  const columns = Object.entries(entity.columns).filter(([name, column]) => isKey(column?.column ?? name));
  const own = entity.primary_key ?? [];
  const names = [...new Set([...own, ...columns.map(([name]) => name)])];
  return names.length === own.length ? entity : { ...entity, entity_key_columns: names };
}

function compile(document: ManifestDocument, candidates: readonly AdoptionCandidate[]): DraftAttempt {
  try {
    return { ok: true, document, manifest: parseManifest(JSON.stringify(document), 'manifest.yaml') };
  } catch (error) {
    if (!(error instanceof ManifestProblems)) throw error;
    const faults = new Map<string, string>();
    for (const { path, message } of error.diagnostics) {
      const table = tableAt(path, document, candidates);
      if (table !== null && !faults.has(table)) faults.set(table, message);
    }
    return { ok: false, faults, problems: error };
  }
}

/** Returns the table whose draft causes an error at the JSON pointer `path`; null if there is none. */
function tableAt(
  path: string,
  document: ManifestDocument,
  candidates: readonly AdoptionCandidate[],
): string | null {
  const [section = '', name = '', part = '', table = ''] = path
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (section === 'connectors') return part === 'tables' && table !== '' ? table : null;
  const from = section === 'relationships' ? document.relationships?.[name]?.from : name;
  const [first] = [from].flat();
  const entity = section === 'relationships' ? first?.split('.')[0] : first;
  const owner = candidates.find((c) => c.name === entity);
  return owner === undefined ? null : tableOf(owner);
}

type Metrics = NonNullable<ManifestDocument['metrics']>;

const MOST_COLUMNS = 4;

/** Metrics for each entity: its row count, and sums and averages of unmasked amounts of money. */
function metricsFor({ entities, catalog, relationships }: Manifest): Metrics {
  const links = new Set(
    [...relationships.values()].flatMap(({ from }) => from.columns.map((c) => `${from.entity}.${c}`)),
  );
  const taken = new Set([...catalog.relations.keys()].map((name) => name.toLowerCase()));
  const metrics: Record<string, Metrics[string]> = Object.create(null);
  const add = (name: string, entity: string, expression: string, description: string): void => {
    const free = freeMetricName(name, taken);
    if (free !== null) metrics[free] = { description, entity, expression };
  };
  for (const entity of entities.keys()) {
    const relation = catalog.relations.get(entity);
    if (relation === undefined) continue;
    add(`${entity}_count`, entity, 'count(*)', `How many ${entity} there are.`);
    for (const { name } of amountsOf(relation, links)) {
      const column = identifier(name);
      if (moneyOf(name) === 'sum and average')
        add(`${entity}_${name}_sum`, entity, `sum(${column})`, `${name}, added up.`);
      add(`${entity}_${name}_average`, entity, `avg(${column})`, `${name}, on average.`);
    }
  }
  return metrics;
}

function amountsOf(
  { name: entity, columns, primaryKey }: Relation,
  links: ReadonlySet<string>,
): readonly Column[] {
  return columns
    .filter((c) => isNumber(c.type) && c.sensitivity === null && moneyOf(c.name) !== null)
    .filter((c) => !primaryKey.includes(c.name) && !links.has(`${entity}.${c.name}`))
    .slice(0, MOST_COLUMNS);
}

/** Returns `name` and marks it as taken; null if it is taken already or not a valid name, for example too long. */
function freeMetricName(name: string, taken: Set<string>): string | null {
  const key = name.toLowerCase();
  if (!isModelName(name) || taken.has(key)) return null;
  taken.add(key);
  return name;
}

export interface LostLink {
  readonly table: string;
  /** The foreign key as text: `loan_copy (isbn, copy) to lib.copy (isbn, number)`. */
  readonly link: string;
  readonly reason: string;
}

function lostLinks(candidates: readonly AdoptionCandidate[], manifest: Manifest): readonly LostLink[] {
  const adopted = new Map([...manifest.catalog.relations.values()].map((r) => [tableName(r), r.name]));
  return candidates.flatMap((candidate) =>
    adopted.has(tableOf(candidate))
      ? candidate.foreign_keys
          .filter((link) => !isCarried(candidate, link, manifest, adopted))
          .map((link) => ({
            table: tableOf(candidate),
            link: shown(link),
            reason: reasonOf(candidate, link, manifest, adopted),
          }))
      : [],
  );
}

type AdoptedTables = ReadonlyMap<string, string>;

function shown({ name, columns, references }: CandidateLink): string {
  return `${name} (${columns.join(', ')}) to ${tableOf(references)} (${references.columns.join(', ')})`;
}

function physical(entity: string, names: readonly string[], { catalog }: Manifest): readonly string[] {
  const columns = catalog.relations.get(entity)?.columns ?? [];
  return names.map((name) => columns.find((c) => c.name === name)?.physical ?? '');
}

function isCarried(
  candidate: AdoptionCandidate,
  { columns, references }: CandidateLink,
  manifest: Manifest,
  adopted: AdoptedTables,
): boolean {
  const own = adopted.get(tableOf(candidate)) ?? '';
  const target = adopted.get(tableOf(references));
  const same = (names: readonly string[]): boolean =>
    [...names].sort().join('\n') === [...columns].sort().join('\n');
  const bridge = manifest.bridges.get(own);
  if (bridge !== undefined)
    return [bridge.left, bridge.right].some(
      (side) => side.entity === target && same(physical(own, side.columns, manifest)),
    );
  return [...manifest.relationships.values()].some(
    ({ from, to }) =>
      from.entity === own && to.entity === target && same(physical(own, from.columns, manifest)),
  );
}

function reasonOf(
  candidate: AdoptionCandidate,
  { columns, references }: CandidateLink,
  manifest: Manifest,
  adopted: AdoptedTables,
): string {
  const target = adopted.get(tableOf(references));
  if (target === undefined) return `${tableOf(references)} is not in the manifest`;
  const own = manifest.catalog.relations.get(adopted.get(tableOf(candidate)) ?? '');
  const hidden = columns.find((c) => own?.columns.every((x) => x.physical !== c));
  if (hidden !== undefined) return `column ${hidden} is not in the manifest`;
  if (manifest.bridges.has(target)) return `${target} is a bridge: relationships lead to entities`;
  return `it refers to no primary key of ${target}; a query may join on it`;
}
