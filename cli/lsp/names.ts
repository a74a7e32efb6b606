import { isObject } from '../../src/base/is-object.js';

/** Names declared in a manifest and its policy, collected even if the files are invalid. */
export interface ManifestNames {
  readonly connectors: readonly NamedConnector[];
  readonly relations: readonly NamedRelation[];
  readonly metrics: readonly string[];
  readonly rerankers: readonly string[];
  readonly subjects: readonly string[];
  readonly roles: readonly string[];
  readonly purposes: readonly string[];
  readonly labels: readonly string[];
}

interface NamedConnector {
  readonly name: string;
  readonly tables: readonly { readonly name: string; readonly columns: readonly string[] }[];
}

export interface NamedRelation {
  readonly name: string;
  readonly kind: 'entity' | 'bridge' | 'facet';
  readonly description: string | null;
  readonly columns: readonly NamedColumn[];
  /** A table such as `sales.orders`, and its connector; null if the relation's declaration does not name them. */
  readonly table: { readonly connector: string; readonly name: string } | null;
}

export interface NamedColumn {
  readonly name: string;
  readonly type: string | null;
  readonly description: string | null;
  /** Section of the relation's declaration that lists the column. */
  readonly section: 'columns' | 'metadata' | 'computed' | 'derived';
}

export const NO_NAMES: ManifestNames = {
  connectors: [],
  relations: [],
  metrics: [],
  rerankers: [],
  subjects: [],
  roles: [],
  purposes: [],
  labels: [],
};

export function namesOf(manifest: unknown, policy: unknown): ManifestNames {
  const connectors = membersOf(manifest, 'connectors').map(
    ([name, connector]): NamedConnector => ({
      name,
      tables: membersOf(connector, 'tables').map(([table, its]) => ({
        name: table,
        columns: membersOf(its, 'columns').map(([column]) => column),
      })),
    }),
  );
  const typed = typesOf(manifest);
  const section = (key: string, kind: NamedRelation['kind']): readonly NamedRelation[] =>
    membersOf(manifest, key).map(([name, its]) => relationOf(name, kind, its, typed));
  return {
    connectors,
    relations: [
      ...section('entities', 'entity'),
      ...section('bridges', 'bridge'),
      ...section('facets', 'facet'),
    ],
    metrics: keysOf(manifest, 'metrics'),
    rerankers: keysOf(manifest, 'rerankers'),
    subjects: keysOf(policy, 'subjects'),
    roles: keysOf(policy, 'roles'),
    purposes: keysOf(policy, 'purposes'),
    labels: [...new Set([...keysOf(policy, 'masks'), ...labelsIn(manifest)])].sort(),
  };
}

type Types = ReadonlyMap<string, ReadonlyMap<string, string>>;

function typesOf(manifest: unknown): Types {
  return new Map(
    membersOf(manifest, 'connectors').flatMap(([connector, its]) =>
      membersOf(its, 'tables').map(([table, parts]) => [
        `${connector}.${table}`,
        new Map(
          membersOf(parts, 'columns').flatMap(([column, c]) =>
            textIn(c, 'type').map((type) => [column, type]),
          ),
        ),
      ]),
    ),
  );
}

function relationOf(name: string, kind: NamedRelation['kind'], its: unknown, typed: Types): NamedRelation {
  const table = tableOf(memberOf(its, 'source'));
  const types = table === null ? undefined : typed.get(`${table.connector}.${table.name}`);
  const listed = memberOf(its, kind === 'facet' ? 'metadata' : 'columns');
  const plain: readonly (readonly [string, unknown])[] = Array.isArray(listed)
    ? listed.map((column) => [String(column), null])
    : isObject(listed)
      ? Object.entries(listed)
      : [];
  const columns = plain.map(
    ([column, c]): NamedColumn => ({
      name: column,
      type: types?.get(textIn(c, 'column')[0] ?? column) ?? null,
      description: textIn(c, 'description')[0] ?? null,
      section: kind === 'facet' ? 'metadata' : 'columns',
    }),
  );
  const others = (['computed', 'derived'] as const).flatMap((section) =>
    membersOf(its, section).map(
      ([column, c]): NamedColumn => ({
        name: column,
        type: null,
        section,
        description: textIn(c, 'description')[0] ?? textIn(c, 'expression')[0] ?? null,
      }),
    ),
  );
  return {
    name,
    kind,
    description: textIn(its, 'description')[0] ?? null,
    columns: [...columns, ...others],
    table,
  };
}

function tableOf(source: unknown): NamedRelation['table'] {
  if (typeof source === 'string') {
    const dot = source.indexOf('.');
    return dot < 0 ? null : { connector: source.slice(0, dot), name: source.slice(dot + 1) };
  }
  const [connector] = textIn(source, 'connector');
  const [name] = textIn(source, 'table');
  return connector === undefined || name === undefined ? null : { connector, name };
}

function* labelsIn(manifest: unknown): Generator<string> {
  for (const [, connector] of membersOf(manifest, 'connectors'))
    for (const [, table] of membersOf(connector, 'tables'))
      for (const [, column] of membersOf(table, 'columns')) {
        yield* textIn(column, 'sensitivity');
        if (memberOf(column, 'pii') === true) yield 'pii';
      }
}

function memberOf(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

function membersOf(value: unknown, key: string): readonly (readonly [string, unknown])[] {
  const member = memberOf(value, key);
  return isObject(member) && !Array.isArray(member) ? Object.entries(member) : [];
}

function keysOf(value: unknown, key: string): readonly string[] {
  return membersOf(value, key).map(([name]) => name);
}

function textIn(value: unknown, key: string): readonly string[] {
  const member = memberOf(value, key);
  return typeof member === 'string' ? [member] : [];
}
