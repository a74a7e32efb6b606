import type { ImportResult, ModelFormat, ModelImportOptions } from '../../../interchange/index.js';
import { ManifestProblems, pointer } from '../../../src/model/manifest/index.js';
import { imported } from './support.js';

/** What only says again what stands elsewhere, and is documented as left alone. */
const RESTATED = /^\/(version|dialects|vendors)(\/|$)|\/relation_name$/;

type Steps = readonly (string | number)[];

/** The plain values of a document, each with the way to it. */
function leaves(value: unknown, path: Steps = []): readonly (readonly [Steps, unknown])[] {
  if (value === null) return []; // says nothing
  if (typeof value !== 'object') return [[path, value]];
  return Object.entries(value).flatMap(([key, member]) =>
    leaves(member, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}

function changedAt(value: unknown, path: Steps): unknown {
  const [step, ...rest] = path;
  if (step === undefined) {
    if (typeof value === 'boolean') return !value;
    return typeof value === 'number' ? value + 1 : `${String(value)}x`;
  }
  if (Array.isArray(value)) return value.map((v, i) => (i === step ? changedAt(v, rest) : v));
  return Object.fromEntries(
    Object.entries(value as object).map(([k, v]) => [k, k === step ? changedAt(v, rest) : v]),
  );
}

export function meaning({ document, policy, losses }: ImportResult): string {
  return JSON.stringify([document, policy, losses.map((l) => [l.path, l.kind, l.reason])]);
}

function meaningOf(format: ModelFormat, source: unknown, options: Partial<ModelImportOptions>): string {
  try {
    return meaning(imported(format, JSON.stringify(source), options));
  } catch (error) {
    if (error instanceof ManifestProblems) return error.message;
    throw error;
  }
}

interface Silence {
  /** JSON Pointers to the values that count for nothing and are not reported. */
  readonly silent: readonly string[];
  /** How many plain values the source has. */
  readonly values: number;
}

/** One way to each kind of value: those that differ only in their place in a list and stand beside the same type. */
function oneOfEachShape(ways: readonly Steps[], source: unknown): readonly Steps[] {
  const shapes = new Map<string, Steps>();
  for (const way of ways) {
    const shape = `${way.map((step) => (typeof step === 'number' ? '*' : step)).join('/')} ${typeBeside(way, source)}`;
    if (!shapes.has(shape)) shapes.set(shape, way);
  }
  return [...shapes.values()];
}

/** The nearest `type` above a value. */
function typeBeside(way: Steps, source: unknown): string {
  let type = '';
  let value: unknown = source;
  for (const step of way) {
    if (typeof value !== 'object' || value === null) break;
    if ('type' in value && typeof value.type === 'string') type = value.type;
    value = Object.entries(value).find(([key]) => key === `${step}`)?.[1];
  }
  return type;
}

/**
 * Looks for values of a source that are lost without a word: neither is one reported, nor does the import change if it is
 * changed.
 *
 * @param only which values are changed: `shapes`, one of each kind
 */
export function silentValues(
  format: ModelFormat,
  source: unknown,
  options: Partial<ModelImportOptions> = {},
  only: 'all' | 'shapes' = 'all',
): Silence {
  const before = imported(format, JSON.stringify(source), options);
  const unchanged = meaning(before);
  const said = before.losses.map((l) => ({ path: l.path, lost: l.kind === 'lost' }));
  const isTold = (at: string): boolean =>
    said.some((l) => l.path === at || (l.lost && (at.startsWith(`${l.path}/`) || l.path === '')));
  const all = leaves(source).map(([path]) => path);
  const open = all.filter((path) => !isTold(pointer(path)) && !RESTATED.test(pointer(path)));
  const silent = (only === 'all' ? open : oneOfEachShape(open, source)).flatMap((path) => {
    const at = pointer(path);
    return meaningOf(format, changedAt(source, path), options) === unchanged ? [at] : [];
  });
  return { silent, values: all.length };
}
