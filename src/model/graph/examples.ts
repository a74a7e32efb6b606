import { identifier, quoteLiteral, type TypeName } from 'osl-compiler';
import type { ColumnView, EntityView, FacetView, GraphView, LinkView, MetricView } from './view.js';

/** Example queries in the reader's own names; a test runs them all. Keys are made up, since rows are never read. */

const SHOWN_COLUMNS = 4;

function from(entity: string): string {
  return `osl.entities.${identifier(entity)}`;
}

function list(columns: readonly string[], alias: string | null = null): string {
  const lead = alias === null ? '' : `${alias}.`;
  return columns.map((c) => `${lead}${identifier(c)}`).join(', ');
}

/** `select id, name from osl.entities.customer limit 10`, and one with its content if it has facets. */
export function entityExamples(entity: EntityView, facets: readonly FacetView[]): readonly string[] {
  const shown = entity.columns.filter((c) => c.rows).slice(0, SHOWN_COLUMNS);
  if (shown.length === 0) return entity.aggregates ? [`select count(*) from ${from(entity.name)}`] : [];
  const plain = `select ${list(shown.map((c) => c.name))} from ${from(entity.name)} limit 10`;
  const joint = facets.length === 0 ? null : jointExample(entity);
  return joint === null ? [plain] : [plain, joint];
}

/** Null if the reader cannot refer to rows by a key of one column. */
export function jointExample(entity: EntityView): string | null {
  const [key, ...more] = keyOf(entity) ?? [];
  const value = key === undefined ? null : made(key.type);
  if (key === undefined || more.length > 0 || value === null) return null;
  const name = identifier(key.name);
  const content = [...entity.derived.map((d) => identifier(d.name)), 'evidence'].join(', ');
  return `select ${name}, ${content} from ${from(entity.name)} where ${name} in (${value})`;
}

export function facetExample(facet: FacetView): string {
  return `select text, score, cite from ${retrieve(facet)}`;
}

/** Empty for a metric over several entities. */
export function metricExamples({ name, entity, measurable }: MetricView): readonly string[] {
  return entity === null || !measurable ? [] : [`select measure(${identifier(name)}) from ${from(entity)}`];
}

export function joinExample({ from: left, to: right, bridge }: LinkView): string {
  const on = (a: string, as: readonly string[], b: string, bs: readonly string[]): string =>
    as.map((c, i) => `${a}.${identifier(c)} = ${b}.${identifier(bs[i] ?? '')}`).join(' and ');
  const head = `select ${list(left.columns, 'a')}, ${list(right.columns, 'b')} from ${from(left.entity)} a`;
  const target = `join ${from(right.entity)} b`;
  if (bridge === null) return `${head} ${target} on ${on('a', left.columns, 'b', right.columns)} limit 10`;
  return (
    `${head} join ${from(bridge.name)} j on ${on('j', bridge.fromColumns, 'a', left.columns)} ` +
    `${target} on ${on('b', right.columns, 'j', bridge.toColumns)} limit 10`
  );
}

/**
 * A TRAVERSE along a link; null if an end has no key that the reader sees, or a key type without an example value.
 */
export function traverseExampleIn(view: GraphView): (link: LinkView) => string | null {
  const entities = new Map(view.entities.map((e) => [e.name, e]));
  return ({ name, from: left, to: right }) => {
    const anchor = keyOf(entities.get(left.entity));
    const target = keyOf(entities.get(right.entity));
    const values = (anchor ?? []).flatMap((c) => made(c.type) ?? []);
    if (anchor === null || target === null || values.length < anchor.length) return null;
    const ends = `anchor => ${quoteLiteral(left.entity)}, target => ${quoteLiteral(right.entity)}`;
    const walk = `TRAVERSE(${ends}, keys => (${values.join(', ')}), via => ${quoteLiteral(name)})`;
    return `select ${target.map((c) => identifier(c.name)).join(', ')}, depth from ${walk} limit 10`;
  };
}

/** Passages about an entity beside its columns, joined on the key. */
export function crossModalExample(facet: FacetView): string {
  const key = identifier(facet.keyOfEntity);
  return (
    `select x.${key}, r.text from ${from(facet.entity)} x ` +
    `join ${retrieve(facet)} r on x.${key} = r.${identifier(facet.entityKey)}`
  );
}

function retrieve({ name, maxTopK }: FacetView): string {
  return `RETRIEVE(facet => ${quoteLiteral(name)}, query => 'what is it about', top_k => ${Math.min(5, maxTopK)})`;
}

/** Columns of the key; null if the reader cannot see all of them in rows. */
function keyOf(entity: EntityView | undefined): readonly ColumnView[] | null {
  const names = entity?.primaryKey ?? [];
  const columns = names.flatMap((name) => entity?.columns.find((c) => c.name === name && c.rows) ?? []);
  return columns.length > 0 && columns.length === names.length ? columns : null;
}

/** A literal of a key type; null for other types. */
function made(type: TypeName): string | null {
  switch (type) {
    case 'text':
    case 'bpchar':
      return "'a key'";
    case 'int2':
    case 'int4':
    case 'int8':
    case 'numeric':
      return '1';
    case 'uuid':
      return "'00000000-0000-0000-0000-000000000000'";
    case 'date':
      return "'2026-01-01'";
    default:
      return null;
  }
}
