import type { Column, ComputedColumn, Metric, Relation, RelationAccess } from 'osl-compiler';
import { stringify } from 'yaml';
import { definitionOfSpan } from '../../../src/model/graph/build-view.js';
import type { Caller } from '../../support/frontends.js';
import { CALLERS, CATALOG, grantParts, MASKS } from '../golden/catalog.js';

/** The shop of the golden cases as a manifest and a policy, so that a service can serve it. */

const entities = [...CATALOG.relations.values()].filter((r) => r.connector === 'main');

export function goldenManifest(): string {
  const named = <T>(list: readonly T[], entry: (one: T) => readonly [string, unknown]): object =>
    Object.fromEntries(list.map(entry));
  const of = (kind: Relation['kind']) => entities.filter((r) => r.kind === kind);
  const straight = CATALOG.edges.filter((e) => e.bridge === null);
  return stringify({
    version: 1,
    tenant: 'golden',
    connectors: {
      main: { kind: 'pglite', tables: named(entities, (r) => [tableOf(r), { columns: tableColumns(r) }]) },
    },
    entities: named(of('entity'), (r) => [r.name, entityOf(r)]),
    bridges: named(of('bridge'), (r) => [
      r.name,
      {
        source: `main.${tableOf(r)}`,
        left: { entity: 'product', columns: ['product_id'] },
        right: { entity: 'tag', columns: ['tag_id'] },
        columns: r.columns.map((c) => c.name),
      },
    ]),
    relationships: named(straight, (e) => [
      e.name,
      { from: `${e.from}.${e.fromColumns[0]}`, to: `${e.to}.${e.toColumns[0]}`, kind: 'many_to_one' },
    ]),
    metrics: named([...CATALOG.metrics.values()], (m) => [m.name, metricOf(m)]),
    raw_sql: { allow: entities.filter((r) => r.name !== 'tag').map((r) => `main.${tableOf(r)}`) },
  });
}

function tableOf({ schema, table }: Relation): string {
  return `${schema}.${table}`;
}

function tableColumns(r: Relation): object {
  return Object.fromEntries(r.columns.map((c) => [c.physical, columnOf(c)]));
}

function columnOf({ type, sensitivity, stored, labels }: Column): object {
  return {
    type,
    ...(stored === undefined ? {} : { stored }),
    ...(sensitivity === null ? {} : { sensitivity }),
    ...(labels === undefined ? {} : { labels }),
  };
}

function entityOf(r: Relation): object {
  const computed = (c: ComputedColumn) => [c.name, { expression: c.expression }] as const;
  return {
    source: `main.${tableOf(r)}`,
    primary_key: r.primaryKey,
    entity_key_columns: r.sealedKeys,
    columns: Object.fromEntries(r.columns.map((c) => [c.name, { column: c.physical }])),
    ...(r.timeDimension === undefined ? {} : { time_dimension: r.timeDimension }),
    ...(r.computed === undefined ? {} : { computed: Object.fromEntries(r.computed.map(computed)) }),
  };
}

function metricOf(m: Metric): object {
  const format = m.format === undefined ? {} : { format: m.format };
  switch (m.type) {
    case 'simple':
      return {
        entity: m.entity,
        expression: m.expression,
        ...(m.filter === null ? {} : { filter: m.filter }),
        ...format,
      };
    case 'ratio': {
      const input = ({ metric, filter }: typeof m.numerator) =>
        filter === null ? metric : { metric, filter };
      return { type: 'ratio', numerator: input(m.numerator), denominator: input(m.denominator), ...format };
    }
    case 'derived':
      return { type: 'derived', expression: m.expression, ...format };
    case 'cumulative':
      return {
        type: m.span.kind.startsWith('offset') ? 'offset' : 'cumulative',
        metric: m.metric,
        ...definitionOfSpan(m.span),
        ...format,
      };
    case 'conversion':
      return {
        type: 'conversion',
        base: m.base,
        conversion: m.conversion,
        constant_properties: m.same,
        calculation: m.calculation,
        ...(m.window === null ? {} : definitionOfSpan(m.window)),
        ...format,
      };
    default: {
      const unknown: never = m;
      return unknown;
    }
  }
}

export function goldenPolicy(): string {
  const subjects = [...CALLERS].flatMap(([name, { attributes }]) =>
    attributes.map((known, i) => [
      subjectOf(name, i),
      {
        ceiling: [name],
        attributes: Object.fromEntries([...known].map(([key, values]) => [key, [...values]])),
      },
    ]),
  );
  const roles = [...CALLERS].map(([name, { access }]) => {
    const relations = [...access.relations].filter(([on]) => entities.some((e) => e.name === on));
    const deny = relations.flatMap(([on, { denied }]) =>
      denied.size === 0 ? [] : [{ on, columns: [...denied] }],
    );
    return [
      name,
      {
        grants: relations.flatMap(([on, rights]) => grantsOf(on, rights)),
        ...(deny.length === 0 ? {} : { deny }),
      },
    ];
  });
  return stringify({
    version: 1,
    tenant: 'golden',
    subjects: Object.fromEntries(subjects),
    roles: Object.fromEntries(roles),
    masks: Object.fromEntries(MASKS),
    limits: { query: 100_000, sample: 100_000, schema: 100_000, authoring: 100_000, catalog: 100_000 },
  });
}

function grantsOf(on: string, { grants }: RelationAccess): readonly object[] {
  return grants.map((grant) => {
    const { columns, unmask, filter, minimum, metrics } = grantParts(grant);
    return {
      on,
      columns: columns ?? '*',
      ...(unmask === undefined ? {} : { unmask }),
      ...(filter === undefined ? {} : { rows: filter }),
      ...(minimum === undefined ? {} : { min_group_size: minimum }),
      ...(metrics === undefined ? {} : { metrics }),
    };
  });
}

function subjectOf(name: string, index: number): string {
  return `user:${name}${index === 0 ? '' : index}`;
}

/** Whoever asks as `name` in a golden case. */
export function goldenCaller(name: string): Caller {
  const chain = (CALLERS.get(name)?.attributes ?? [new Map()]).map((_, i) => subjectOf(name, i));
  return { subject: chain.at(-1) ?? '', aclRoles: [name], chain };
}
