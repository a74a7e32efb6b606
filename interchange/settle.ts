import {
  compileManifest,
  type Manifest,
  type ManifestDocument,
  manifestShape,
  type Path,
  type UnplacedDiagnostic,
} from '../src/model/manifest/index.js';
import type { MetricBody } from './draft.js';
import { members } from './names.js';
import { report, type SourcePlace } from './source.js';
import { fit, namesIn, parseExpression } from './sql/expression.js';

/** Origins of a document's members, by `metrics/revenue`. */
export interface Origins {
  get(key: string): SourcePlace | undefined;
}

const SECTIONS = ['entities', 'relationships', 'bridges', 'facets', 'metrics', 'lexicon'] as const;
type Section = (typeof SECTIONS)[number];

/**
 * The loadable part of `document`. Members that the schema or the compiler refuses are removed with everything that
 * depends on them, and reported at their origin. Requires `ready()` of osl-compiler.
 */
export function settle(
  document: ManifestDocument,
  origins: Origins,
): { readonly document: ManifestDocument; readonly manifest: Manifest } {
  let current = document;
  const gone = new Set<string>();
  // Ends because every round removes something.
  for (;;) {
    const shape = manifestShape(current);
    const compiled = shape.length > 0 ? { ok: false as const, problems: shape } : compileManifest(current);
    if (compiled.ok) return { document: current, manifest: compiled.manifest };
    const next = without(current, compiled.problems, origins, gone);
    if (next === null) throw new TypeError(`an import cannot be mended: ${messages(compiled.problems)}`);
    current = next;
  }
}

function messages(problems: readonly UnplacedDiagnostic[]): string {
  return problems.map((p) => `${p.path.join('/')}: ${p.message}`).join('; ');
}

function without(
  document: ManifestDocument,
  problems: readonly UnplacedDiagnostic[],
  origins: Origins,
  gone: Set<string>,
): ManifestDocument | null {
  const computed = problems.filter(isComputed);
  if (computed.length > 0) return withoutComputed(document, computed, origins);
  const optional = problems.filter(isOptional);
  if (optional.length > 0) return withoutMembers(document, optional, origins);
  if (problems.some(({ path }) => path[0] === 'raw_sql')) return withoutRawSql(document, problems, origins);
  const faults = new Map<string, UnplacedDiagnostic>();
  for (const problem of problems) {
    const key = memberOf(problem.path);
    if (key !== null && !faults.has(key)) faults.set(key, problem);
  }
  if (faults.size === 0) return null;
  for (const [key, { message, path }] of faults) {
    gone.add(key);
    const [section, name] = splitKey(key);
    const where = path.length > 2 ? ` (${path.slice(2).join('.')})` : '';
    tell(origins, key, `${NOUNS[section]} \`${name}\` does not fit${where}: ${message}`);
  }
  dependents(document, gone, origins);
  return prune(document, gone);
}

function isComputed({ path }: UnplacedDiagnostic): boolean {
  return path[0] === 'entities' && path[2] === 'computed' && path[3] !== undefined;
}

function withoutComputed(
  document: ManifestDocument,
  problems: readonly UnplacedDiagnostic[],
  origins: Origins,
): ManifestDocument {
  const gone = new Map(problems.map((p) => [p.path.slice(0, 4).join('/'), p] as const));
  for (const [key, { message }] of gone)
    tell(origins, key, `a computed column, \`${key.split('/').at(-1)}\`, does not fit: ${message}`);
  const entities = Object.entries(document.entities).map(([name, entity]) => {
    if (entity.computed === undefined) return [name, entity] as const;
    const left = Object.entries(entity.computed).filter(([c]) => !gone.has(`entities/${name}/computed/${c}`));
    const { computed: _, ...rest } = entity;
    return [name, left.length === 0 ? rest : { ...rest, computed: members(left) }] as const;
  });
  return { ...document, entities: members(entities) };
}

/** Optional members of an entity. */
const OPTIONAL = ['time_dimension', 'legs', 'derived', 'composition'] as const;

function isOptional({ path }: UnplacedDiagnostic): boolean {
  return path[0] === 'entities' && OPTIONAL.some((key) => key === path[2]);
}

function withoutMembers(
  document: ManifestDocument,
  problems: readonly UnplacedDiagnostic[],
  origins: Origins,
): ManifestDocument {
  const entities: Record<string, Record<string, unknown>> = members(
    Object.entries(document.entities).map(([name, entity]) => [name, { ...entity }] as const),
  );
  for (const { path, message } of problems) {
    const [, name, key] = path.map((step) => `${step}`);
    const entity = entities[name ?? ''];
    if (entity === undefined || key === undefined || entity[key] === undefined) continue;
    tell(origins, `entities/${name}`, `\`${key}\` of \`${name}\` does not fit: ${message}`);
    delete entity[key];
  }
  return { ...document, entities } as unknown as ManifestDocument; // the same entities with fewer members
}

/** Removes tables of raw SQL that nothing governs any more. */
function withoutRawSql(
  document: ManifestDocument,
  problems: readonly UnplacedDiagnostic[],
  origins: Origins,
): ManifestDocument {
  const gone = new Set<number>();
  for (const { path, message } of problems) {
    if (path[0] !== 'raw_sql') continue;
    gone.add(Number(path[2]));
    tell(origins, 'raw_sql', `a table of \`raw_sql\` does not fit: ${message}`);
  }
  const allow = (document.raw_sql?.allow ?? []).filter((_, i) => !gone.has(i));
  return { ...document, raw_sql: { allow } };
}

const NOUNS: Readonly<Record<Section, string>> = {
  entities: 'entity',
  relationships: 'relationship',
  bridges: 'bridge',
  facets: 'facet',
  metrics: 'metric',
  lexicon: 'term',
};

function tell(origins: Origins, key: string, reason: string): void {
  const place = origins.get(key);
  if (place === undefined) throw new TypeError(`\`${key}\` of an import has no origin`);
  report(place, 'lost', reason);
}

function splitKey(key: string): readonly [Section, string] {
  const slash = key.indexOf('/');
  return [key.slice(0, slash) as Section, key.slice(slash + 1)]; // created by `memberOf`, or from a section's name
}

function memberOf(path: Path): string | null {
  const [section, name] = path;
  const known = SECTIONS.find((s) => s === section);
  return known === undefined || name === undefined ? null : `${known}/${name}`;
}

/** Adds everything that depends on removed members, so that a chain of metrics is removed in one round. */
function dependents(document: ManifestDocument, gone: Set<string>, origins: Origins): void {
  const made = new Map<string, string[]>();
  const note = (user: string, of: string): void => {
    made.set(of, [...(made.get(of) ?? []), user]);
  };
  for (const [name, metric] of Object.entries(document.metrics ?? {})) {
    for (const input of inputsOf(metric)) note(`metrics/${name}`, `metrics/${input}`);
    if (metric.entity !== undefined) note(`metrics/${name}`, `entities/${metric.entity}`);
  }
  for (const [name, r] of Object.entries(document.relationships ?? {})) {
    for (const end of [r.from, r.to].flat())
      note(`relationships/${name}`, `entities/${end.slice(0, end.indexOf('.'))}`);
  }
  for (const [name, b] of Object.entries(document.bridges ?? {}))
    for (const side of [b.left, b.right]) note(`bridges/${name}`, `entities/${side.entity}`);
  const open = [...gone];
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    for (const user of made.get(key) ?? []) {
      if (gone.has(user)) continue;
      gone.add(user);
      open.push(user);
      const [section, name] = splitKey(user);
      tell(origins, user, `${NOUNS[section]} \`${name}\` is made of \`${splitKey(key)[1]}\`, which was lost`);
    }
  }
}

export function inputsOf(metric: MetricBody): readonly string[] {
  const inputs = [
    metric.numerator,
    metric.denominator,
    metric.metric,
    metric.base,
    metric.conversion,
  ].flatMap((i) => (i === undefined ? [] : [typeof i === 'string' ? i : i.metric]));
  if (metric.type !== 'derived' || metric.expression === undefined) return inputs;
  const { expression } = metric;
  const parsed = fit(() => namesIn(parseExpression(expression)).map((parts) => parts.join('.')));
  return parsed.ok ? [...inputs, ...parsed.value] : inputs;
}

function prune(document: ManifestDocument, gone: ReadonlySet<string>): ManifestDocument {
  const out: Record<string, unknown> = { ...document };
  for (const section of SECTIONS) {
    const part: object | undefined = document[section];
    if (part === undefined) continue;
    const kept = Object.entries(part).filter(([name]) => !gone.has(`${section}/${name}`));
    if (kept.length > 0 || section === 'entities') out[section] = members(kept);
    else delete out[section];
  }
  return out as unknown as ManifestDocument; // the same sections with fewer members
}
