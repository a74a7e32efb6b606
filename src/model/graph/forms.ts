import type { Features, Joins } from 'osl-compiler';
import {
  crossModalExample,
  entityExamples,
  facetExample,
  joinExample,
  jointExample,
  metricExamples,
  traverseExampleIn,
} from './examples.js';
import type { GraphView } from './view.js';

/** One of the five query forms of OSL-SQL. Source: contract, OSL-SQL rules 3. */
export interface FormEntry {
  readonly name: 'structured' | 'retrieve' | 'traverse' | 'joint' | 'cross_modal';
  readonly shape: string;
  readonly rules: readonly string[];
  /** In the reader's own names; empty if the reader sees nothing that the form could read. */
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
  const told = new Set(facets.map((f) => f.entity));
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
      examples: first(entities, (e) => (told.has(e.name) ? jointExample(e) : null)),
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
