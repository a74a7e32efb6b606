import {
  type Features,
  FUNCTIONS,
  type FunctionDefinition,
  identifier,
  type Joins,
  OPERATORS,
  type OperatorArgument,
  type OperatorDefinition,
  type OperatorSignature,
  quoteLiteral,
  SQL_OPERATORS,
  type TypeName,
} from 'osl-compiler';
import type { ColumnView, EntityView, FacetView, GraphView, LinkView, MetricView } from './view.js';

/** A function of the language, with the signature of each overload, such as `(text, int4) → text`. */
export interface FunctionEntry {
  readonly name: string;
  readonly kind: FunctionDefinition['kind'];
  readonly signatures: readonly string[];
  /** Allowed literals for the first argument, such as the unit of `date_trunc`; null if it takes any value. */
  readonly units: readonly string[] | null;
}

/** An operator on values (`infix`, `prefix`) or on the passages of RETRIEVE (`encoder`, `decoder`). */
export interface OperatorEntry {
  readonly name: string;
  readonly class: 'infix' | 'prefix' | 'encoder' | 'decoder';
  readonly signatures: readonly string[];
  /** False for decoder operators if no language model is configured. */
  readonly available: boolean;
}

/** Returns all functions of OSL-SQL. COUNT(*), MEASURE, COALESCE, CASE and the like belong to the grammar instead. */
export function functionEntries(): readonly FunctionEntry[] {
  return grouped(FUNCTIONS, (f) => `${f.kind} ${f.name}`, functionSignature).map(([first, signatures]) => {
    const units = first.structural.get(0);
    return { name: first.name, kind: first.kind, signatures, units: units === undefined ? null : [...units] };
  });
}

function functionSignature(f: FunctionDefinition): string {
  const args: string[] = [...f.arguments];
  if (f.variadic !== null) args.push(`${f.variadic}…`);
  return `(${args.join(', ')}) → ${f.result}`;
}

/** Returns the operators on values, followed by those on passages. */
export function operatorEntries(hasDecoder: boolean): readonly OperatorEntry[] {
  const values = grouped(SQL_OPERATORS, (o) => `${o.left === null} ${o.name}`, operatorSignature);
  return [
    ...values.map(([first, signatures]): OperatorEntry => {
      const kind = first.left === null ? 'prefix' : 'infix';
      return { name: first.name, class: kind, signatures, available: true };
    }),
    ...Object.entries(OPERATORS).map(([name, signature]): OperatorEntry => {
      const available = signature.class === 'encoder' || hasDecoder;
      return { name, class: signature.class, signatures: [passageSignature(signature)], available };
    }),
  ];
}

function operatorSignature({ left, right, result }: OperatorDefinition): string {
  return left === null ? `(${right}) → ${result}` : `(${left}, ${right}) → ${result}`;
}

function passageSignature({ arguments: args, result, resultWith, nullable }: OperatorSignature): string {
  const list = ['text', ...args.map(argumentText)].join(', ');
  const other = resultWith === null ? '' : `, ${resultWith.type} with ${resultWith.argument}`;
  return `(${list}) → ${result}${other}${nullable ? ' or NULL' : ''}`;
}

/** Formats an argument: `[reference text]`, `[threshold => float8 from -1 to 1 = 0.2]`. */
function argumentText(a: OperatorArgument): string {
  const bounds = a.min === null || a.max === null ? '' : ` from ${a.min} to ${a.max}`;
  const preset = a.default === null ? '' : ` = ${a.default}`;
  const name = a.positional ? a.name : `${a.name} =>`;
  return `[${name} ${a.type}${bounds}${preset}]`;
}

/** Groups `all` by key, in order of first occurrence. Each group has its first member and the texts of all members. */
function grouped<T>(
  all: readonly T[],
  key: (one: T) => string,
  text: (one: T) => string,
): readonly (readonly [T, readonly string[]])[] {
  const groups = new Map<string, [T, string[]]>();
  for (const one of all) {
    const known = groups.get(key(one));
    if (known === undefined) groups.set(key(one), [one, [text(one)]]);
    else known[1].push(text(one));
  }
  return [...groups.values()];
}

/** One of the five query forms of OSL-SQL. Source: contract, OSL-SQL rules 3. */
export interface FormEntry {
  readonly name: 'structured' | 'retrieve' | 'traverse' | 'joint' | 'cross_modal';
  readonly shape: string;
  readonly rules: readonly string[];
  readonly examples: readonly string[];
}

function joined(joins: Joins): string {
  const entities =
    joins === 'any'
      ? 'Joins take any predicate'
      : 'Joins take equalities of sealed keys, one of each side, and nothing else in ON; a column of a derived or common table is sealed where it passes a key through unchanged; IN, EXISTS and LATERAL follow the same rule';
  return `${entities}. A bridge can be joined, never read alone.`;
}

export function formEntries(view: GraphView): readonly FormEntry[] {
  const { entities, facets, metrics, features, joins } = view;
  const links = view.links.filter((l) => l.followed);
  const described = new Set(facets.map((f) => f.entity));
  return [
    {
      name: 'structured',
      shape:
        'SELECT <columns, expressions, aggregates, MEASURE(metric)> FROM osl.entities.<entity> [JOIN …] [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT …]',
      rules: [
        joined(joins),
        `${allowed(features)} are allowed; data is never changed.`,
        'Values may be parameters $1 …, sent beside the text.',
        'A masked column is masked in every clause, so that no predicate tells its value.',
      ],
      examples: [
        ...entities.slice(0, 1).flatMap((e) => entityExamples(e, [])),
        ...metrics.flatMap(metricExamples).slice(0, 1),
        ...links.slice(0, 1).map(joinExample),
      ],
    },
    {
      name: 'retrieve',
      shape:
        "SELECT <columns or operator(text)> FROM RETRIEVE(facet => '<facet>', query => '<text>', top_k => <n> [, skip => <n>, min_score => <x>, per => 'document']) [WHERE <scalar_indexed field> …]",
      rules: [
        'Columns of a passage: text, score, cite, redacted_fields, the key of its entity, and the metadata of its facet.',
        'WHERE over scalar_indexed fields, also IN (SELECT …) on one of them, is applied before the best passages are taken; what a join filters after.',
        "A facet with two legs (retrieval.hybrid) fuses words and meaning; mode => 'lexical' or 'dense' takes one, weights => array[<lexical>, <dense>] weighs them.",
        'rerank => true has the reranker of the facet (retrieval.rerankers) order the best passages anew; it needs a grant that lets passages leave.',
        "top_k is at most the facet's retrieval.max_top_k; skip leaves out the best ones, for pages, min_score what scores less, per => 'document' all but the best passage of each document.",
      ],
      examples: facets.slice(0, 1).map(facetExample),
    },
    {
      name: 'traverse',
      shape:
        "SELECT <columns of the target, depth, path> FROM TRAVERSE(anchor => '<entity>', target => '<entity>', keys => ('<key>', …) [, via => '<relationship>', direction => 'in' | 'out' | 'both', max_hops => <n>, per_hop => <n>])",
      rules: [
        'Walks declared relationships from the keys of the anchor, hop by hop, each target once. A key of several columns is a row: keys => ((a, b), …).',
        'per_hop is 1000 unless told. Rows beyond it are cut in key order, and the answer says `truncated`; what is computed over them (aggregates, DISTINCT, windows, joins, subqueries, ORDER BY with LIMIT) takes per_hop from the server, and is refused where that is not enough.',
      ],
      examples: first(links, traverseExampleIn(view)),
    },
    {
      name: 'joint',
      shape:
        "SELECT <columns, derived attributes, evidence> FROM osl.entities.<entity> WHERE <key> IN ('<key>', …)",
      rules: [
        'evidence is the passages about the entity, as JSON; derived attributes were taken from them.',
        'Either needs a list of keys.',
      ],
      examples: first(entities, (e) => (described.has(e.name) ? jointExample(e) : null)),
    },
    {
      name: 'cross_modal',
      shape:
        'SELECT <x.column, r.column> FROM osl.entities.<entity> x JOIN RETRIEVE(…) r ON x.<key> = r.<key>',
      rules: ['The only join of text with entities: on the key that both sides have in the clear.'],
      examples: facets.slice(0, 1).map(crossModalExample),
    },
  ];
}

function allowed(features: Features): string {
  const named: readonly (readonly [boolean, string])[] = [
    [features.derived_tables, 'CTEs and derived tables'],
    [features.set_operations, 'set operations'],
    [features.window_functions, 'window functions'],
    [features.subqueries, 'scalar subqueries, IN and EXISTS'],
    [!features.subqueries, 'lists after IN'],
  ];
  return named.flatMap(([on, name]) => (on ? [name] : [])).join(', ');
}

function first<T>(all: readonly T[], example: (one: T) => string | null): readonly string[] {
  for (const one of all) {
    const text = example(one);
    if (text !== null) return [text];
  }
  return [];
}

/** Maximum number of columns in an example. Examples use visible names and invented keys; tests run every example. */

const SHOWN_COLUMNS = 4;

function from(entity: string): string {
  return `osl.entities.${identifier(entity)}`;
}

function list(columns: readonly string[], alias: string | null = null): string {
  const lead = alias === null ? '' : `${alias}.`;
  return columns.map((c) => `${lead}${identifier(c)}`).join(', ');
}

/** Returns queries such as `select id, name from osl.entities.customer limit 10`; with facets, also a query by key. */
export function entityExamples(entity: EntityView, facets: readonly FacetView[]): readonly string[] {
  const shown = entity.columns.filter((c) => c.rows).slice(0, SHOWN_COLUMNS);
  if (shown.length === 0) return entity.aggregates ? [`select count(*) from ${from(entity.name)}`] : [];
  const plain = `select ${list(shown.map((c) => c.name))} from ${from(entity.name)} limit 10`;
  const joint = facets.length === 0 ? null : jointExample(entity);
  return joint === null ? [plain] : [plain, joint];
}

/** Returns a query for an entity's content by key; null if no single-column key with an example value is visible. */
function jointExample(entity: EntityView): string | null {
  const [key, ...more] = keyOf(entity) ?? [];
  const value = key === undefined ? null : exampleLiteral(key.type);
  if (key === undefined || more.length > 0 || value === null) return null;
  const name = identifier(key.name);
  const content = [...entity.derived.map((d) => identifier(d.name)), 'evidence'].join(', ');
  return `select ${name}, ${content} from ${from(entity.name)} where ${name} in (${value})`;
}

export function facetExample(facet: FacetView): string {
  return `select text, score, cite from ${retrieve(facet)}`;
}

/** Returns example queries for a metric; empty if the metric spans several entities or MEASURE cannot return it. */
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
 * Returns a function that writes a TRAVERSE along a link; null if the reader cannot see the key of either end, or if a
 * key's type has no example value.
 */
function traverseExampleIn(view: GraphView): (link: LinkView) => string | null {
  const entities = new Map(view.entities.map((e) => [e.name, e]));
  return ({ name, from: left, to: right }) => {
    const anchor = keyOf(entities.get(left.entity));
    const target = keyOf(entities.get(right.entity));
    const values = (anchor ?? []).flatMap((c) => exampleLiteral(c.type) ?? []);
    if (anchor === null || target === null || values.length < anchor.length) return null;
    const ends = `anchor => ${quoteLiteral(left.entity)}, target => ${quoteLiteral(right.entity)}`;
    const walk = `TRAVERSE(${ends}, keys => (${values.join(', ')}), via => ${quoteLiteral(name)})`;
    return `select ${target.map((c) => identifier(c.name)).join(', ')}, depth from ${walk} limit 10`;
  };
}

/** Returns a query for passages together with the entity's columns, joined on the key. */
function crossModalExample(facet: FacetView): string {
  const key = identifier(facet.keyOfEntity);
  return (
    `select x.${key}, r.text from ${from(facet.entity)} x ` +
    `join ${retrieve(facet)} r on x.${key} = r.${identifier(facet.entityKey)}`
  );
}

function retrieve({ name, maxTopK }: FacetView): string {
  return `RETRIEVE(facet => ${quoteLiteral(name)}, query => 'what is it about', top_k => ${Math.min(5, maxTopK)})`;
}

/** Returns the key columns; null if the reader cannot see all of them in rows, or if there is no key. */
function keyOf(entity: EntityView | undefined): readonly ColumnView[] | null {
  const names = entity?.primaryKey ?? [];
  const columns = names.flatMap((name) => entity?.columns.find((c) => c.name === name && c.rows) ?? []);
  return columns.length > 0 && columns.length === names.length ? columns : null;
}

/** Returns an example literal of a key type; null if the type has no example. */
function exampleLiteral(type: TypeName): string | null {
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
