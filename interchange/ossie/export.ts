import type { Node } from '@pgsql/types';
import { type Column, isMoment, type Relation } from 'osl-compiler';
import type { PolicyDocument } from '../../policy/document.js';
import type { Manifest, ManifestDocument, Path } from '../../src/model/manifest/index.js';
import type { MetricBody } from '../draft.js';
import { TakenNames } from '../names.js';
import type { LossKind } from '../source.js';
import {
  attempt,
  divides,
  functionName,
  identifier,
  isAggregate,
  NoMapping,
  parseExpression,
  print,
} from '../sql-expression.js';
import {
  DATATYPES,
  datatypeOf,
  type OssieContext,
  type OssieDataset,
  type OssieDocument,
  type OssieField,
  type OssieMetric,
  type OssieModel,
  type OssieRelationship,
  VENDOR,
} from './document.js';

const VERSION = '0.2.0.dev0';

/** A construct that the core of the format (without extensions) cannot express; `path` points into the manifest. */
interface ExportGap {
  readonly path: Path;
  readonly kind: LossKind;
  readonly reason: string;
}

interface GatewayExtension {
  readonly format: 1;
  readonly manifest: ManifestDocument;
  /** The policy, exported without its rules for logins. */
  readonly policy?: PolicyDocument;
}

/**
 * Exports a manifest. Constructs that the core cannot express go into this gateway's extension. A policy is included
 * only if given, and never with its rules for logins.
 */
export function ossieOf(
  manifest: Manifest,
  policy: PolicyDocument | null,
): { readonly ossie: OssieDocument; readonly lacks: readonly ExportGap[] } {
  const { model, lacks } = coreOf(manifest);
  const shared = policy === null ? {} : { policy: withoutLogins(policy) };
  const extension: GatewayExtension = { format: 1, manifest: manifest.document, ...shared };
  const data = JSON.stringify(extension);
  const whole = { ...model, custom_extensions: [{ vendor_name: VENDOR, data }] };
  return { ossie: { version: VERSION, semantic_model: [whole] }, lacks };
}

/** Returns the policy without its rules for logins, which say who may act as a subject on one gateway. */
export function withoutLogins(policy: PolicyDocument): PolicyDocument {
  const { service_accounts: _accounts, certificates: _certificates, exchange: _rules, ...rest } = policy;
  return rest;
}

/** Builds the model without the extension, and lists the constructs that it lacks. */
export function coreOf(manifest: Manifest): {
  readonly model: OssieModel;
  readonly lacks: readonly ExportGap[];
} {
  const { document, catalog } = manifest;
  const lacks: ExportGap[] = [];
  const words = wordsOf(manifest, lacks);
  const relations = [...catalog.relations.values()].filter((r) => r.kind !== 'facet');
  const datasets = relations.map((r) => datasetOf(r, manifest, words, lacks));
  const relationships = relationshipsOf(manifest);
  const metrics = Object.keys(document.metrics ?? {}).flatMap((name) =>
    metricOf(name, document, words, lacks),
  );
  for (const section of ['entities', 'relationships', 'bridges', 'metrics'] as const) {
    for (const [name, { deprecated }] of Object.entries(document[section] ?? {})) {
      if (deprecated === undefined) continue;
      const reason = `that \`${name}\` is deprecated is in the extension only`;
      lacks.push({ path: [section, name, 'deprecated'], kind: 'lost', reason });
    }
  }
  for (const { name, description } of manifest.relationships.values())
    if (description !== null)
      lacks.push({
        path: ['relationships', name, 'description'],
        kind: 'lost',
        reason: 'the description of a link is in the extension only',
      });
  for (const name of Object.keys(document.facets ?? {}))
    lacks.push({
      path: ['facets', name],
      kind: 'lost',
      reason: `facet \`${name}\` is in the extension only`,
    });
  if (document.raw_sql !== undefined)
    lacks.push({ path: ['raw_sql'], kind: 'lost', reason: '`raw_sql` is in the extension only' });
  const model = {
    name: manifest.tenant ?? 'model',
    datasets,
    ...(relationships.length > 0 && { relationships }),
    ...(metrics.length > 0 && { metrics }),
  };
  return { model, lacks };
}

type SynonymsByTarget = ReadonlyMap<string, readonly string[]>;

/** Groups the words of the lexicon by the object they mean; terms for facets are added to `lacks`. */
function wordsOf({ lexicon }: Manifest, lacks: ExportGap[]): SynonymsByTarget {
  const words = new Map<string, readonly string[]>();
  for (const { term, refersTo, kind, synonyms } of lexicon.values()) {
    if (kind === 'facet')
      lacks.push({
        path: ['lexicon', term],
        kind: 'lost',
        reason: `the term \`${term}\` means a facet: it is in the extension only`,
      });
    else words.set(refersTo, [...(words.get(refersTo) ?? []), term, ...synonyms]);
  }
  return words;
}

function contextOf(words: SynonymsByTarget, name: string): { readonly ai_context?: OssieContext } {
  const synonyms = words.get(name);
  return synonyms === undefined ? {} : { ai_context: { synonyms } };
}

function datasetOf(
  relation: Relation,
  manifest: Manifest,
  words: SynonymsByTarget,
  lacks: ExportGap[],
): OssieDataset {
  const { name, description, connector, schema, table, primaryKey } = relation;
  const section = relation.kind === 'bridge' ? 'bridges' : 'entities';
  const lack = (reason: string, ...path: readonly string[]): void => {
    lacks.push({ path: [section, name, ...path], kind: 'lost', reason });
  };
  if (relation.kind === 'bridge')
    lack(`bridge \`${name}\` is a dataset with two links; that it is not an entity, the extension says`);
  const entity = manifest.document.entities[name];
  if (entity?.computed !== undefined) lack('computed columns are in the extension only', 'computed');
  if (entity?.derived !== undefined) lack('attributes taken from text are in the extension only', 'derived');
  if (entity?.legs !== undefined) lack('what content an entity has is in the extension only', 'legs');
  if (relation.kind === 'entity' && relation.sealedKeys.some((k) => !primaryKey.includes(k)))
    lack('which columns joins may use is in the extension only', 'entity_key_columns');
  return {
    name,
    source: [connector, schema, table].map(identifier).join('.'),
    primary_key: primaryKey,
    ...(description !== null && { description }),
    ...contextOf(words, name),
    fields: relation.columns.map((c) => fieldOf(c, relation, words)),
  };
}

function fieldOf(column: Column, relation: Relation, words: SynonymsByTarget): OssieField {
  const { name, physical, type, description, sensitivity, nullable } = column;
  const datatype = datatypeOf(type);
  const required = !nullable && !relation.primaryKey.includes(name);
  const own = {
    ...(DATATYPES.get(datatype) !== type && { type }),
    ...(sensitivity !== null && { sensitivity }),
    ...(required && { nullable: false }),
  };
  return {
    name,
    expression: { dialects: [{ dialect: 'ANSI_SQL', expression: identifier(physical) }] },
    ...(isMoment(type) && { dimension: { is_time: relation.timeDimension === name } }),
    ...(description !== null && { description }),
    datatype,
    ...contextOf(words, `${relation.name}.${name}`),
    ...(Object.keys(own).length > 0 && {
      custom_extensions: [{ vendor_name: VENDOR, data: JSON.stringify(own) }],
    }),
  };
}

/** Returns the links, plus the two sides of each bridge under names that no link uses. */
function relationshipsOf({ relationships, bridges }: Manifest): readonly OssieRelationship[] {
  const links = [...relationships.values()].map(({ name, from, to }) => {
    return { name, from: from.entity, to: to.entity, from_columns: from.columns, to_columns: to.columns };
  });
  const names = new TakenNames();
  for (const { name } of links) names.take(name);
  const sides = [...bridges.values()].flatMap(({ name, left, right }) =>
    [left, right].map(({ entity, columns, keys }) => {
      const own = names.take(`${name}_${entity}`.slice(0, 60));
      return { name: own, from: name, to: entity, from_columns: columns, to_columns: keys };
    }),
  );
  return [...links, ...sides];
}

function metricOf(
  name: string,
  document: ManifestDocument,
  words: SynonymsByTarget,
  lacks: ExportGap[],
): readonly OssieMetric[] {
  const path = ['metrics', name];
  const made = attempt(() => metricText(name, document));
  if (!made.ok) {
    lacks.push({ path, kind: 'lost', reason: `metric \`${name}\` is in the extension only: ${made.reason}` });
    return [];
  }
  const { text, differs } = made.value;
  if (differs !== null) lacks.push({ path, kind: 'approximated', reason: `metric \`${name}\`: ${differs}` });
  const description = document.metrics?.[name]?.description;
  return [
    {
      name,
      expression: { dialects: [{ dialect: 'ANSI_SQL', expression: text }] },
      ...(description !== undefined && { description }),
      ...contextOf(words, name),
    },
  ];
}

/** Maximum length of an expression in UTF-16 code units; inlining nested metrics can make it long. */
const LONGEST = 4000;

/** Expression of a metric; `differs` says how its meaning may differ in other tools, null if it does not. */
interface MetricText {
  readonly text: string;
  readonly differs: string | null;
}

/**
 * Writes a metric as one expression over the fields of datasets.
 *
 * @throws NoMapping for running totals, conversions and metrics of another period, for metrics that use one of them,
 * and for expressions that become too long
 */
function metricText(name: string, document: ManifestDocument): MetricText {
  const metric = metricNamed(name, document);
  const text = expressionText(metric, [], document);
  const differs =
    metric.type === 'ratio'
      ? 'a ratio of nothing to nothing may be an error elsewhere'
      : metric.type === 'derived' && divides(parseExpression(metric.expression ?? ''))
        ? 'a division of whole numbers may be cut elsewhere, and one by zero an error'
        : null;
  return { text, differs };
}

function metricNamed(name: string, document: ManifestDocument): MetricBody {
  const metric = document.metrics?.[name];
  if (metric === undefined) throw new NoMapping(`metric \`${name}\` is not declared`);
  return metric;
}

function expressionText(metric: MetricBody, filters: readonly string[], document: ManifestDocument): string {
  const text = written(metric, filters, document);
  if (text.length > LONGEST) throw new NoMapping(`written out it is longer than ${LONGEST} characters`);
  return text;
}

function written(metric: MetricBody, filters: readonly string[], document: ManifestDocument): string {
  switch (metric.type) {
    case undefined:
    case 'simple': {
      const own = metric.filter === undefined ? filters : [metric.filter, ...filters];
      return simpleText(metric.entity ?? '', metric.expression ?? '', own, document);
    }
    case 'ratio': {
      const [numerator, denominator] = [metric.numerator, metric.denominator].map((input) => {
        if (input === undefined) throw new NoMapping('a ratio has two sides');
        const name = typeof input === 'string' ? input : input.metric;
        const more = typeof input === 'string' || input.filter === undefined ? [] : [input.filter];
        return expressionText(metricNamed(name, document), [...filters, ...more], document);
      });
      return `cast(${numerator} as double precision) / nullif(${denominator}, 0)`;
    }
    case 'derived':
      return print(parseExpression(metric.expression ?? ''), {
        column: (parts) => `(${expressionText(metricNamed(parts.join('.'), document), filters, document)})`,
      });
    case 'cumulative':
      throw new NoMapping('a running total has no counterpart in the core');
    case 'conversion':
      throw new NoMapping('a conversion has no counterpart in the core');
    case 'offset':
      throw new NoMapping('a figure of another period has no counterpart in the core');
    default: {
      const unknown: never = metric.type;
      return unknown;
    }
  }
}

/** Aggregates that ignore NULL, so a filter can be written as a CASE around their argument. */
const PASS_NULL: ReadonlySet<string> = new Set([
  ...['sum', 'avg', 'min', 'max', 'count', 'stddev', 'stddev_pop', 'stddev_samp'],
  ...['variance', 'var_pop', 'var_samp', 'bool_and', 'bool_or'],
]);

function simpleText(
  entity: string,
  expression: string,
  filters: readonly string[],
  document: ManifestDocument,
): string {
  const field = (name: string): string => `${identifier(entity)}.${identifier(name)}`;
  const column = (parts: readonly string[]): string => {
    if (parts.length > 1) throw new NoMapping(`\`${parts.join('.')}\` is reached by a link`);
    return field(parts.join('.'));
  };
  const names = { column };
  const condition = filters.map((f) => `(${print(parseExpression(f), names)})`).join(' and ');
  // `count(*)` is written as a count of the key, whose qualified name identifies the dataset.
  const row = field(document.entities[entity]?.primary_key?.[0] ?? '');
  const call = (node: Extract<Node, { FuncCall: unknown }>): string | null => {
    if (!isAggregate(node)) return null;
    const { agg_star, agg_distinct, agg_filter, agg_order, args = [] } = node.FuncCall;
    const [arg, more] = args;
    const plain = more === undefined && agg_filter === undefined && (agg_order ?? []).length === 0;
    const name = functionName(node.FuncCall);
    if (plain && PASS_NULL.has(name)) {
      const value = agg_star === true || arg === undefined ? row : print(arg, names);
      const distinct = agg_distinct === true ? 'distinct ' : '';
      return `${name}(${distinct}${condition === '' ? value : `case when ${condition} then ${value} end`})`;
    }
    if (condition === '') return null;
    if (agg_filter !== undefined)
      throw new NoMapping('two filters on one aggregate have no counterpart in the core');
    return `${print(node, names)} filter (where ${condition})`;
  };
  return print(parseExpression(expression), { ...names, call });
}
