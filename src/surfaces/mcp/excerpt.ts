type Fields = Readonly<Record<string, unknown>>;

/** Lists of the schema whose members have a name that a caller can ask for. */
const NAMED = ['entities', 'facets', 'metrics', 'relationships'] as const;
/** Lists that are the same for everybody. */
const LANGUAGE = ['functions', 'operators', 'forms'] as const;
export const PARTS = [...NAMED, ...LANGUAGE] as const;
export type Part = (typeof PARTS)[number];

/** What of the schema is wanted: all of it unless told. */
export interface Wanted {
  /** Of entities, facets, metrics and relationships, those of these names (or full names) only. */
  readonly names?: readonly string[] | undefined;
  readonly parts?: readonly Part[] | undefined;
}

export interface Excerpt {
  readonly schema: Fields;
  readonly truncated: boolean;
  readonly hint: string | null;
}

const HINT =
  'the schema is larger than one answer: this is an index of it. Ask again with `names` for what you need, or with `parts`';

/**
 * The schema, or what is wanted of it. Where it has more than `maxBytes` of JSON it becomes an index: names and
 * descriptions, as many as fit.
 */
export function excerptOf(schema: Fields, wanted: Wanted, maxBytes: number): Excerpt {
  const chosen = choose(schema, wanted);
  if (size(chosen) <= maxBytes) return { schema: chosen, truncated: false, hint: null };
  return { schema: fit(indexOf(chosen), maxBytes), truncated: true, hint: HINT };
}

function choose(schema: Fields, { names, parts }: Wanted): Fields {
  const keep = new Set<string>(parts ?? PARTS);
  const called = names === undefined ? null : new Set(names.map((n) => n.toLowerCase()));
  return mapParts(schema, (part, list) => {
    if (!keep.has(part)) return null;
    if (called === null || !(NAMED as readonly string[]).includes(part)) return list;
    return list.filter((one) => [one['name'], one['fqn']].some((n) => called.has(String(n).toLowerCase())));
  });
}

function indexOf(schema: Fields): Fields {
  return mapParts(schema, (part, list) => {
    if (part === 'forms') return list;
    return list.map(({ name, fqn, description }) => {
      return { name, ...(fqn === undefined ? {} : { fqn }), ...(description ? { description } : {}) };
    });
  });
}

/** Drops members from the ends of the longest lists until the rest fits. */
function fit(schema: Fields, maxBytes: number): Fields {
  let fields = schema;
  while (size(fields) > maxBytes) {
    const [longest, list] = PARTS.map((part) => [part, listIn(fields, part)] as const).reduce((a, b) =>
      b[1].length > a[1].length ? b : a,
    );
    if (list.length === 0) return fields;
    fields = { ...fields, [longest]: list.slice(0, Math.floor(list.length / 2)) };
  }
  return fields;
}

function mapParts(schema: Fields, change: (part: Part, list: readonly Fields[]) => unknown): Fields {
  const parts = new Map<string, unknown>(PARTS.map((part) => [part, change(part, listIn(schema, part))]));
  return Object.fromEntries(
    Object.entries(schema).flatMap(([name, value]) => {
      if (!parts.has(name)) return [[name, value]];
      const changed = parts.get(name);
      return changed === null ? [] : [[name, changed]];
    }),
  );
}

function listIn(schema: Fields, part: Part): readonly Fields[] {
  const value = schema[part];
  return Array.isArray(value) ? value : [];
}

function size(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
