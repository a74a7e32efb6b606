/** Size of a generated graph. */
export interface LargeGraph {
  readonly entities: number;
  /** Entities of one subject area: each leads to its first one, and that one to the first area's. */
  readonly area: number;
}

/**
 * A manifest of very many entities, in areas as a large company has them: one in ten has a metric, one in thirty a
 * bridge to its neighbour. The tables need not be there: nobody asks for rows.
 */
export function largeManifest({ entities, area }: LargeGraph): string {
  const numbers = Array.from({ length: entities }, (_, n) => n);
  const bridged = numbers.filter((n) => n % 30 === 7 && n + 1 < entities);
  const lines = [
    'version: 1',
    'tenant: large',
    'connectors:',
    '  db:',
    '    kind: pglite',
    '    tables:',
    ...numbers.map(
      (n) =>
        `      big.t${n}: { columns: { id: { type: int8 }, parent_id: { type: int8 }, name: { type: text }, email: { type: text, pii: true }, amount: { type: numeric }, at: { type: timestamptz } } }`,
    ),
    ...bridged.map((n) => `      big.b${n}: { columns: { a: { type: int8 }, b: { type: int8 } } }`),
    'entities:',
    ...numbers.map(
      (n) =>
        `  ${nameOf(n, area)}: { description: "Number ${n} of area ${areaOf(n, area)}.", source: db.big.t${n}, primary_key: [id], entity_key_columns: [id, parent_id], time_dimension: at, columns: [id, parent_id, name, email, amount, at] }`,
    ),
    'bridges:',
    ...bridged.map(
      (n) =>
        `  link_${n}: { source: db.big.b${n}, left: { entity: ${nameOf(n, area)}, columns: [a] }, right: { entity: ${nameOf(n + 1, area)}, columns: [b] }, columns: [a, b] }`,
    ),
    'relationships:',
    ...numbers.flatMap((n) => {
      const parent = n % area === 0 ? 0 : n - (n % area);
      if (n === 0) return [];
      return [
        `  of_${n}: { from: ${nameOf(n, area)}.parent_id, to: ${nameOf(parent, area)}.id, kind: many_to_one }`,
      ];
    }),
    'metrics:',
    ...numbers
      .filter((n) => n % 10 === 3)
      .map((n) => `  total_${n}: { entity: ${nameOf(n, area)}, expression: sum(amount) }`),
  ];
  return `${lines.join('\n')}\n`;
}

function nameOf(n: number, area: number): string {
  return `area${areaOf(n, area)}_thing${n}`;
}

function areaOf(n: number, area: number): number {
  return Math.floor(n / area);
}

/** `user:all` sees all of it, addresses masked; `user:half` the areas with an even number. */
export function largePolicy({ entities, area }: LargeGraph): string {
  const numbers = Array.from({ length: entities }, (_, n) => n);
  const bridged = numbers.filter((n) => n % 30 === 7 && n + 1 < entities);
  return [
    'version: 1',
    'tenant: large',
    'subjects:',
    '  user:all: { ceiling: [everything] }',
    '  user:half: { ceiling: [half] }',
    'roles:',
    '  everything:',
    '    grants:',
    ...numbers.map((n) => `      - { on: ${nameOf(n, area)}, columns: "*" }`),
    ...bridged.map((n) => `      - { on: link_${n}, columns: "*" }`),
    '  half:',
    '    grants:',
    ...numbers
      .filter((n) => areaOf(n, area) % 2 === 0)
      .map((n) => `      - { on: ${nameOf(n, area)}, columns: "*" }`),
    'masks: { pii: redact }',
    'limits: { query: 1000, schema: 1000 }',
    '',
  ].join('\n');
}
