import { MANIFEST_SCHEMA, POLICY_SCHEMA } from '../../src/model/manifest/index.js';
import type { ManifestNames, NamedRelation } from './names.js';
import type { YamlPlace } from './yaml/place.js';

export type PlaceMeaning =
  | { readonly kind: 'relation'; readonly only: NamedRelation['kind'] | null }
  /** A column of the relation named in `of`. */
  | { readonly kind: 'column'; readonly of: string }
  /** An entity and its column, such as `order.customer_id`. */
  | { readonly kind: 'entity column' }
  | { readonly kind: keyof typeof PLAIN_NAMES | 'term' }
  /** A table such as `sales.orders` in connector `of`. If `of` is null, the name starts with that of the connector. */
  | { readonly kind: 'table'; readonly of: string | null }
  /** A column of the table behind the relation named in `of`. */
  | { readonly kind: 'table column'; readonly of: string };

/** Kinds of names that are declared without parts, with the list of them and the section that declares them. */
export const PLAIN_NAMES = {
  metric: { file: 'manifest', section: 'metrics', names: ({ metrics }: ManifestNames) => metrics },
  reranker: { file: 'manifest', section: 'rerankers', names: ({ rerankers }: ManifestNames) => rerankers },
  connector: {
    file: 'manifest',
    section: 'connectors',
    names: ({ connectors }: ManifestNames) => connectors.map(({ name }) => name),
  },
  role: { file: 'policy', section: 'roles', names: ({ roles }: ManifestNames) => roles },
  subject: { file: 'policy', section: 'subjects', names: ({ subjects }: ManifestNames) => subjects },
  purpose: { file: 'policy', section: 'purposes', names: ({ purposes }: ManifestNames) => purposes },
  label: { file: 'policy', section: 'masks', names: ({ labels }: ManifestNames) => labels },
} as const;

type MeaningRule = readonly [
  path: string,
  meaning: (place: YamlPlace, steps: readonly string[]) => PlaceMeaning | null,
];

const ENTITY: PlaceMeaning = { kind: 'relation', only: 'entity' };
const METRIC: PlaceMeaning = { kind: 'metric' };
const ROLE: PlaceMeaning = { kind: 'role' };
const LABEL: PlaceMeaning = { kind: 'label' };
const SUBJECT: PlaceMeaning = { kind: 'subject' };
const RELATION: PlaceMeaning = { kind: 'relation', only: null };

const always = (meaning: PlaceMeaning) => () => meaning;
const ownColumn = (_: YamlPlace, [, of = '']: readonly string[]): PlaceMeaning => ({ kind: 'column', of });
const ownTableColumn = (_: YamlPlace, [, of = '']: readonly string[]): PlaceMeaning => ({
  kind: 'table column',
  of,
});
/** Returns a rule that reads a value as a column of the relation named by `key` in the same mapping. */
const columnOf =
  (key: string) =>
  ({ siblings }: YamlPlace): PlaceMeaning | null => {
    const of = siblings.get(key);
    return of === undefined ? null : { kind: 'column', of };
  };
const tableOfConnector = ({ siblings }: YamlPlace): PlaceMeaning => ({
  kind: 'table',
  of: siblings.get('connector') ?? null,
});

/** Meanings of values by path, and of keys by path followed by `:key`; `*` matches any key. */
const RULES: Readonly<Record<FileKind, readonly MeaningRule[]>> = {
  manifest: [
    ...['entities', 'bridges', 'facets'].flatMap((section): MeaningRule[] => [
      [`${section}/*/source`, always({ kind: 'table', of: null })],
      [`${section}/*/source/connector`, always({ kind: 'connector' })],
      [`${section}/*/source/table`, tableOfConnector],
      [`${section}/*/columns/[]`, ownTableColumn],
      [`${section}/*/columns/*/column`, ownTableColumn],
      [`${section}:key`, always(RELATION)],
      [`${section}/*/columns:key`, ownColumn],
    ]),
    ['entities/*/primary_key/[]', ownColumn],
    ['entities/*/entity_key_columns/[]', ownColumn],
    ['entities/*/time_dimension', ownColumn],
    ['entities/*/cache/watermark', ownColumn],
    ['entities/*/computed:key', ownColumn],
    ['entities/*/derived:key', ownColumn],
    ['entities/*/legs/[]', always({ kind: 'relation', only: 'facet' })],
    ['entities/*/derived/*/facet', always({ kind: 'relation', only: 'facet' })],
    ['relationships/*/from', always({ kind: 'entity column' })],
    ['relationships/*/to', always({ kind: 'entity column' })],
    ['relationships/*/from/[]', always({ kind: 'entity column' })],
    ['relationships/*/to/[]', always({ kind: 'entity column' })],
    ['bridges/*/left/entity', always(ENTITY)],
    ['bridges/*/right/entity', always(ENTITY)],
    ['bridges/*/left/columns/[]', ownColumn],
    ['bridges/*/right/columns/[]', ownColumn],
    ['bridges/*/primary_key/[]', ownColumn],
    ['rollups/*/entity', always(ENTITY)],
    ['rollups/*/dimensions/[]', columnOf('entity')],
    ['rollups/*/measures/[]', columnOf('entity')],
    ['facets/*/entity', always(ENTITY)],
    ['facets/*/entity_key', ownTableColumn],
    ['facets/*/document_id', ownTableColumn],
    ['facets/*/text', ownTableColumn],
    ['facets/*/metadata/[]', ownTableColumn],
    ['facets/*/metadata/*/column', ownTableColumn],
    ['facets/*/scalar_indexed/[]', ownColumn],
    ['facets/*/versions/*/redact/[]', always(LABEL)],
    ['facets/*/retrieval/rerankers/[]', always({ kind: 'reranker' })],
    ['metrics/*/entity', always(ENTITY)],
    ...['numerator', 'denominator', 'metric', 'base', 'conversion'].map(
      (key): MeaningRule => [`metrics/*/${key}`, always(METRIC)],
    ),
    ['metrics/*/numerator/metric', always(METRIC)],
    ['metrics/*/denominator/metric', always(METRIC)],
    ['metrics:key', always(METRIC)],
    ['lexicon/*/refers_to', always({ kind: 'term' })],
    ['connectors/*/tables/*/columns/*/sensitivity', always(LABEL)],
    ['entities/*/computed/*/sensitivity', always(LABEL)],
    ['raw_sql/allow/[]', always({ kind: 'table', of: null })],
    ['raw_sql/allow/[]/connector', always({ kind: 'connector' })],
    ['raw_sql/allow/[]/table', tableOfConnector],
  ],
  policy: [
    ['subjects/*/ceiling/[]', always(ROLE)],
    ['subjects/*/purposes/[]', always({ kind: 'purpose' })],
    ['roles/*/grants/[]/on', always(RELATION)],
    ['roles/*/grants/[]/columns/[]', columnOf('on')],
    ['roles/*/grants/[]/unmask/[]', always(LABEL)],
    ['roles/*/grants/[]/metrics/[]', always(METRIC)],
    ['roles/*/grants/[]/for/[]', always({ kind: 'purpose' })],
    ['roles/*/grants/[]/distinct:key', columnOf('on')],
    ['roles/*/deny/[]/on', always(RELATION)],
    ['roles/*/deny/[]/columns/[]', columnOf('on')],
    ['attributes/*/on', always(RELATION)],
    ['attributes/*/column', columnOf('on')],
    ['masks:key', always(LABEL)],
    ['order:key', always(RELATION)],
    ['privacy_units:key', always(RELATION)],
    ['privacy_units/*', ownColumn],
    ['service_accounts/*/subject', always(SUBJECT)],
    ['service_accounts/*/acl_roles/[]', always(ROLE)],
    ['certificates/*/subject', always(SUBJECT)],
    ['certificates/*/acl_roles/[]', always(ROLE)],
    ['exchange/[]/ceiling/[]', always(ROLE)],
    ['exchange/[]/roles/map/*', always(ROLE)],
    ['exchange/[]/roles/map/*/[]', always(ROLE)],
    ['exchange/[]/purposes/[]', always({ kind: 'purpose' })],
    ['roles:key', always(ROLE)],
    ['subjects:key', always(SUBJECT)],
  ],
};

/** Meaning of the word at a position, read as a key or as a value; null if it names nothing. */
export function meaningOf(kind: FileKind, place: YamlPlace, as: 'key' | 'value'): PlaceMeaning | null {
  const suffix = as === 'key' ? ':key' : '';
  for (const [path, meaning] of RULES[kind]) {
    if (path.endsWith(':key') !== (as === 'key')) continue;
    if (fits(path.slice(0, path.length - suffix.length).split('/'), place.steps))
      return meaning(place, place.steps);
  }
  return null;
}

function fits(path: readonly string[], steps: readonly string[]): boolean {
  return path.length === steps.length && path.every((step, i) => step === '*' || step === steps[i]);
}

export interface NameCandidate {
  readonly name: string;
  readonly detail: string | null;
  readonly description: string | null;
}

export function candidatesFor(meaning: PlaceMeaning, names: ManifestNames): readonly NameCandidate[] {
  switch (meaning.kind) {
    case 'relation':
      return names.relations
        .filter(({ kind }) => meaning.only === null || kind === meaning.only)
        .map(({ name, kind, description }) => ({ name, detail: kind, description }));
    case 'column':
      return columnsOf(meaning.of, names);
    case 'entity column':
      return names.relations
        .filter(({ kind }) => kind === 'entity')
        .flatMap((entity) =>
          entity.columns.map((c) => ({ ...columnCandidate(c), name: `${entity.name}.${c.name}` })),
        );
    case 'table column':
      return tableColumnsOf(meaning.of, names);
    case 'table':
      return tablesOf(meaning.of, names);
    case 'term':
      return [
        ...candidatesFor(RELATION, names),
        ...candidatesFor(METRIC, names),
        ...candidatesFor({ kind: 'entity column' }, names),
      ];
    default:
      return plain(PLAIN_NAMES[meaning.kind].names(names), meaning.kind);
  }
}

function columnsOf(relation: string, { relations }: ManifestNames): readonly NameCandidate[] {
  return relations.find(({ name }) => name === relation)?.columns.map(columnCandidate) ?? [];
}

function columnCandidate({ name, type, description }: NamedRelation['columns'][number]): NameCandidate {
  return { name, detail: type, description };
}

function tableColumnsOf(
  relation: string,
  { relations, connectors }: ManifestNames,
): readonly NameCandidate[] {
  const table = relations.find(({ name }) => name === relation)?.table ?? null;
  if (table === null) return [];
  const connector = connectors.find(({ name }) => name === table.connector);
  return plain(connector?.tables.find(({ name }) => name === table.name)?.columns ?? [], table.name);
}

function tablesOf(connector: string | null, { connectors }: ManifestNames): readonly NameCandidate[] {
  return connectors
    .filter(({ name }) => connector === null || name === connector)
    .flatMap(({ name, tables }) =>
      plain(
        tables.map((table) => (connector === null ? `${name}.${table.name}` : table.name)),
        'table',
      ),
    );
}

function plain(names: readonly string[], detail: string): readonly NameCandidate[] {
  return names.map((name) => ({ name, detail, description: null }));
}

export type FileKind = 'manifest' | 'policy';

export interface JsonSchemaPart {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchemaPart>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchemaPart | boolean;
  readonly propertyNames?: JsonSchemaPart;
  readonly items?: JsonSchemaPart;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly examples?: readonly unknown[];
}

const SCHEMAS: Readonly<Record<FileKind, JsonSchemaPart>> = {
  manifest: MANIFEST_SCHEMA,
  policy: POLICY_SCHEMA,
};

/** Schema for the value at `steps`; null if it is unknown. */
export function schemaAt(kind: FileKind, steps: readonly string[]): JsonSchemaPart | null {
  let part: JsonSchemaPart | undefined = SCHEMAS[kind];
  for (const step of steps) {
    if (part === undefined) return null;
    part = step === '[]' ? part.items : memberOf(part, step);
  }
  return part ?? null;
}

function memberOf(
  { properties, additionalProperties }: JsonSchemaPart,
  key: string,
): JsonSchemaPart | undefined {
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

export function mayBe({ type }: JsonSchemaPart, name: string): boolean {
  return type === undefined || type === name || (Array.isArray(type) && type.includes(name));
}

export function choicesOf(part: JsonSchemaPart): readonly string[] {
  if (part.enum !== undefined) return part.enum.map((choice) => (choice === 'null' ? '"null"' : `${choice}`));
  if (part.const !== undefined) return [`${part.const}`];
  if (part.type === 'boolean') return ['true', 'false'];
  return (part.examples ?? []).map(String);
}
