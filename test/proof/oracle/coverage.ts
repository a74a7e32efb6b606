import type { GovernedPlan } from 'osl-compiler';
import { type Expr, type GovernedScan, type Query, walk } from './internals.js';
import { effectiveMask, type World } from './world.js';

/** What a question exercised: nodes of the IR, masks, kinds of join and how grants met. */
const AXES = ['node', 'mask', 'join', 'union'] as const;
type Axis = (typeof AXES)[number];

/** Every cell that is reachable must be filled by enough questions. */
const EXPECTED: Readonly<Record<Axis, readonly string[]>> = {
  node: [
    'column',
    'parameter',
    'null',
    'boolean',
    'structural',
    'call',
    'operation',
    'cast',
    'and',
    'or',
    'not',
    'null_test',
    'truth_test',
    'distinct_test',
    'row_comparison',
    'quantified',
    'membership',
    'case',
    'conditional',
    'array',
    'subscript',
    'aggregate',
    'window',
    'scalar_query',
    'exists',
    'in_query',
    'select',
    'set_operation',
    'values',
    'derived',
    'cte',
    'rows',
    'grouped',
    'grouping_sets',
    'having',
    'distinct',
    'distinct_on',
    'limit',
    'guarded',
  ],
  mask: ['clear', 'uncovered', 'redact', 'null', 'hash', 'partial', 'year', 'deny'],
  join: ['none', 'inner', 'left', 'semi', 'anti'],
  union: ['one grant', 'same rows', 'more rows', 'per cell'],
};

/** Cells that no question can fill, and why. */
export const IMPOSSIBLE: readonly { readonly node: string; readonly join: string; readonly why: string }[] = [
  { node: 'exists', join: 'none', why: 'EXISTS is a semi-join, which is a join' },
  { node: 'in_query', join: 'none', why: 'IN over a query is a semi-join, which is a join' },
  { node: 'rows', join: 'none', why: 'rows of functions stand beside what they are made of, joined to it' },
];

function isPossible(node: string, join: string): boolean {
  return !IMPOSSIBLE.some((i) => i.node === node && i.join === join);
}

type Cells = Readonly<Record<Axis, ReadonlySet<string>>>;

/** Pairs of cells of two axes that questions can fill. */
function expectedPairs(): readonly string[] {
  return AXES.flatMap((a, i) =>
    AXES.slice(i + 1).flatMap((b) =>
      EXPECTED[a].flatMap((x) =>
        EXPECTED[b]
          .filter((y) => a !== 'node' || b !== 'join' || isPossible(x, y))
          .map((y) => `${a} ${x} × ${b} ${y}`),
      ),
    ),
  );
}

/** Counts of questions by cell, over all four axes and by pairs of them. */
export class Coverage {
  readonly #pairs = new Map<string, number>();
  /** Pairs that no question filled. */
  readonly #empty = new Set(expectedPairs());
  readonly #cells = new Map<string, number>();

  add(plan: GovernedPlan, world: World): void {
    const found = cellsOf(plan, world);
    for (const pair of pairsOf(found)) {
      count(this.#pairs, pair);
      this.#empty.delete(pair);
    }
    for (const cell of crossed(found)) count(this.#cells, cell);
  }

  /** True if the plan is of a cell that no question has filled. */
  fills(plan: GovernedPlan, world: World): boolean {
    return crossed(cellsOf(plan, world)).some((cell) => POSSIBLE.has(cell) && !this.#cells.has(cell));
  }

  /** True if the plan is of a pair that no question has filled. */
  fillsPair(plan: GovernedPlan, world: World): boolean {
    return pairsOf(cellsOf(plan, world)).some((pair) => this.#empty.has(pair));
  }

  /** Pairs of cells that no question filled. */
  emptyPairs(): readonly string[] {
    return [...this.#empty];
  }

  /** Cells of all four axes that no question filled. */
  emptyCells(): readonly string[] {
    return [...POSSIBLE].filter((cell) => !this.#cells.has(cell));
  }

  summary(): string {
    const all = POSSIBLE.size;
    return `${all - this.emptyCells().length} of ${all} cells (node × mask × join × union); empty pairs: ${this.emptyPairs().length}`;
  }
}

const POSSIBLE: ReadonlySet<string> = new Set(possibleCells());

function pairsOf(cells: Cells): readonly string[] {
  return AXES.flatMap((a, i) =>
    AXES.slice(i + 1).flatMap((b) =>
      [...cells[a]].flatMap((x) => [...cells[b]].map((y) => `${a} ${x} × ${b} ${y}`)),
    ),
  );
}

function crossed({ node, mask, join, union }: Cells): readonly string[] {
  return [...node].flatMap((n) =>
    [...mask].flatMap((m) => [...join].flatMap((j) => [...union].map((u) => [n, m, j, u].join(' × ')))),
  );
}

function possibleCells(): readonly string[] {
  const { node, mask, join, union } = EXPECTED;
  return node.flatMap((n) =>
    mask.flatMap((m) =>
      join.filter((j) => isPossible(n, j)).flatMap((j) => union.map((u) => [n, m, j, u].join(' × '))),
    ),
  );
}

function count(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

function cellsOf(plan: GovernedPlan, world: World): Cells {
  const cells = {
    node: new Set<string>(),
    mask: new Set<string>(),
    join: new Set<string>(),
    union: new Set<string>(),
  };
  let anti = 0;
  for (const query of walk.allQueries(plan.query)) {
    for (const clause of clausesOf(query)) cells.node.add(clause);
    for (const expr of walk.exprsOf(query)) {
      walk.visitExpr(expr, (e) => {
        cells.node.add(e.kind);
        if (e.kind === 'not' && isSemi(e.arg)) anti++;
        else if (isSemi(e)) cells.join.add('semi');
      });
    }
    if (query.kind !== 'select') continue;
    for (const join of joinsOf(query.from)) cells.join.add(join);
    for (const leaf of walk.leavesOf(query.from)) {
      if (leaf.kind === 'derived' || leaf.kind === 'cte' || leaf.kind === 'rows') cells.node.add(leaf.kind);
      if (leaf.kind === 'governed') addScan(leaf, world, cells);
    }
  }
  if (anti > 0) cells.join.add('anti');
  if (cells.join.size === 0) cells.join.add('none');
  return cells;
}

function isSemi(e: Expr): boolean {
  return e.kind === 'exists' || e.kind === 'in_query';
}

function clausesOf(query: Query): readonly string[] {
  if (query.kind !== 'select') return [query.kind];
  return [
    'select',
    ...(query.grouped ? ['grouped'] : []),
    ...(query.groupingSets === null ? [] : ['grouping_sets']),
    ...(query.having.length > 0 ? ['having'] : []),
    ...(query.distinct ? ['distinct'] : []),
    ...(query.distinctOn.length > 0 ? ['distinct_on'] : []),
    ...(query.limit === null ? [] : ['limit']),
  ];
}

function joinsOf(item: Extract<Query, { kind: 'select' }>['from']): readonly string[] {
  return item?.kind === 'join' ? [item.type, ...joinsOf(item.left), ...joinsOf(item.right)] : [];
}

function addScan(scan: GovernedScan, world: World, cells: Record<Axis, Set<string>>): void {
  const table = world.tables.find((t) => t.name === scan.relation.name);
  if (table === undefined) return;
  if (scan.columns.some((c) => c.name === '#shown')) cells.node.add('guarded');
  for (const shown of scan.columns) {
    const column = table.columns.find((c) => c.name === shown.name);
    if (column === undefined) continue;
    if (shown.masked === 'none') cells.mask.add('clear');
    else
      cells.mask.add(
        column.sensitivity === null
          ? 'uncovered'
          : declaredMask(column.sensitivity, table, effectiveMask(column, table)),
      );
  }
  const filters = new Set(table.grants.map((g) => g.filter?.text));
  const perCell = scan.columns.some((c) => c.masked === 'some');
  if (table.grants.length === 1) cells.union.add('one grant');
  else if (perCell) cells.union.add('per cell');
  else cells.union.add(filters.size === 1 ? 'same rows' : 'more rows');
}

/** `deny` is redacted where another grant shows the column; everything else is as its type bears it. */
function declaredMask(label: string, table: World['tables'][number], effective: string): string {
  return table.masks.get(label) === 'deny' ? 'deny' : effective;
}
