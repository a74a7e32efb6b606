import { PARTS } from './corpus.js';

/** One case: the share of the corpus that a caller may see, and how the permitted chunks relate to the queries. */
export interface Cell {
  /** Permitted share of all chunks in per cent, as used in names of measures. */
  readonly permitted: '100' | '10' | '1' | '0.1';
  readonly relation: 'uncorrelated' | 'correlated' | 'anticorrelated';
  readonly column: 'shard' | 'band';
  /** Upper bound: chunks with `column` below it are permitted. */
  readonly below: number;
}

export type Permitted = Pick<Cell, 'permitted' | 'below'>;

export const PERMITTED: readonly Permitted[] = [
  { permitted: '100', below: PARTS },
  { permitted: '10', below: PARTS / 10 },
  { permitted: '1', below: PARTS / 100 },
  { permitted: '0.1', below: PARTS / 1_000 },
];

export const CELLS: readonly Cell[] = [
  ...PERMITTED.map((p): Cell => ({ ...p, column: 'shard', relation: 'uncorrelated' })),
  ...PERMITTED.filter((p) => p.permitted !== '100').flatMap((p): Cell[] => [
    { ...p, column: 'band', relation: 'correlated' },
    { ...p, column: 'band', relation: 'anticorrelated' },
  ]),
];

/**
 * Band near which query `i` of a cell lies: anywhere; among the permitted ones; or at the opposite end of the direction
 * along which bands lie.
 */
export function bandOf({ relation, below }: Cell, i: number): number {
  const spread = (i * 617) % PARTS;
  switch (relation) {
    case 'uncorrelated':
      return spread;
    case 'correlated':
      return spread % below;
    case 'anticorrelated':
      return PARTS - 1 - (spread % Math.min(below * 10, PARTS / 10));
  }
}

export function roleOf({ column, below }: Cell): string {
  return `${column}${below}`;
}

export function manifestYaml(approximate: boolean): string {
  return `version: 1
tenant: bench
connectors:
  main:
    kind: postgres
    url_env: BENCH_DATABASE_URL
    tables:
      bench.entity: { columns: { id: { type: int4, nullable: false } } }
      bench.chunk:
        columns:
          id: { type: text, nullable: false }
          entity_id: { type: int4, nullable: false }
          shard: { type: int4, nullable: false }
          band: { type: int4, nullable: false }
          body: { type: text, nullable: false }
entities:
  entity: { source: main.bench.entity, primary_key: [id], columns: [id] }
facets:
  chunk:
    source: main.bench.chunk
    entity: entity
    entity_key: entity_id
    document_id: id
    text: body
    metadata: [shard, band]
    scalar_indexed: [shard, band]
    embedding: { model: synthetic }
    versions: { raw: {} }
    retrieval: { max_top_k: 100, approximate: ${approximate} }
`;
}

/**
 * Policy with one subject for each set of chunks and a row filter on the passages, like a grant by department or
 * customer.
 */
export function policyYaml(): string {
  const sets = [...new Map(CELLS.map((cell) => [roleOf(cell), cell])).entries()];
  const subjects = sets.map(([role]) => `  user:${role}: { ceiling: [${role}] }`);
  const roles = sets.map(([role, { column, below }]) => {
    const rows = below === PARTS ? '' : `, rows: "${column} < ${below}"`;
    return `  ${role}:
    grants:
      - { on: entity, columns: "*" }
      - { on: chunk, columns: "*"${rows} }`;
  });
  return `version: 1
tenant: bench
subjects:
${subjects.join('\n')}
roles:
${roles.join('\n')}
masks: {}
limits: { query: 1000000, catalog: 1000000 }
`;
}
