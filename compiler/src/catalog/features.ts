/** A construct that a tenant can disable for all callers and surfaces. */
interface Switch {
  readonly construct: string;
  /** The hint in the error message when the construct is disabled. */
  readonly hint: string;
  readonly description: string;
}

/**
 * OSL-SQL features beyond the contract's five forms, keyed by the names of their switches in the manifest. Clauses of a
 * SELECT over one entity, such as HAVING or DISTINCT, have no switch.
 */
export const FEATURES = Object.freeze({
  set_operations: {
    construct: 'a set operation',
    hint: 'ask for each side by itself',
    description: 'UNION, INTERSECT and EXCEPT.',
  },
  subqueries: {
    construct: 'a subquery as a value',
    hint: 'join on a sealed key, or ask for the inner query by itself',
    description: 'Subqueries in expressions: scalar subqueries, IN and EXISTS; not derived tables or WITH.',
  },
  derived_tables: {
    construct: 'a derived or common table',
    hint: 'name entities in FROM',
    description: 'Derived tables, WITH, WITH RECURSIVE, LATERAL, and VALUES in FROM.',
  },
  window_functions: {
    construct: 'a window function',
    hint: 'group, or order and limit',
    description: 'Window functions: calls with OVER.',
  },
  row_functions: {
    construct: 'a function that makes rows',
    hint: 'ask for the value itself',
    description:
      'Set-returning functions, in FROM and in the select list: generate_series, unnest, jsonb_each.',
  },
  several_searches: {
    construct: 'more than one RETRIEVE',
    hint: 'search for each by itself',
    description: 'More than one RETRIEVE in a statement.',
  },
  operators_over_rows: {
    construct: 'an operator over rows of entities',
    hint: 'use it over passages, of RETRIEVE',
    description: 'Operators over a text column of an entity, such as CLASSIFY(body).',
  },
} satisfies Readonly<Record<string, Switch>>);

export type Feature = keyof typeof FEATURES;

/** True for each feature that the tenant allows. */
export type Features = Readonly<Record<Feature, boolean>>;

export function featuresBy(of: (feature: Feature) => boolean): Features {
  const names = Object.keys(FEATURES) as Feature[]; // Object.keys loses the key type
  return Object.freeze(Object.fromEntries(names.map((name) => [name, of(name)])) as Record<Feature, boolean>);
}

export const ALL_FEATURES: Features = featuresBy(() => true);
export const NO_FEATURES: Features = featuresBy(() => false);
