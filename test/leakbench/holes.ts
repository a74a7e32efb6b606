import type { AttackClass } from '../../leakbench/attacks/index.js';
import type { Patch } from './gateway-copy.js';

/** A fault planted in a copy of the gateway. Attacks of its classes are tried until one finds it. */
export interface Hole {
  readonly name: string;
  readonly on: 'wire' | 'mcp';
  readonly classes: readonly AttackClass[];
  readonly patches: readonly Patch[];
  /** Change of the manifest that the hole needs. */
  readonly manifest?: (text: string) => string;
}

const compiler = (file: string, from: string, to: string): Patch => ({
  file: `compiler/dist/${file}`,
  from,
  to,
});
const gateway = (file: string, from: string, to: string): Patch => ({ file: `dist/${file}`, from, to });

/** Switches off the two proofs of each plan, which otherwise turn the fault into an internal error. */
const NO_PROOF: readonly Patch[] = [
  compiler('govern/verify/verify.js', '    verifyJoins(root, joins);', '    return;'),
  compiler('govern/verify/barrier.js', 'return new BarrierCheck(root, slots).checked();', 'return [];'),
];

/** Helpers for the rewrites below: `open` drops the filter of a scan, `raw` reads emails before the mask. */
const HELPERS = compiler(
  'govern/govern.js',
  'const NONE = new Set();',
  `import { mapChildren as holeChildren, mapSort as holeSort } from '../plan/walk.js';
const open = (i) => i === null ? null : i.kind === 'governed' ? { ...i, filter: null } : i.kind === 'join' ? { ...i, left: open(i.left), right: open(i.right) } : i;
const openQuery = (q) => q.kind === 'select' ? { ...q, from: open(q.from) } : q;
const raw = (e) => e.kind === 'column' && e.name === 'email' ? { ...e, name: 'email#raw' } : holeChildren(e, raw, (q) => q);
const NONE = new Set();`,
);

/** Rewrites each governed query of a statement: an expression of JavaScript over \`q\`, the query. */
function rewrite(visit: string): readonly Patch[] {
  const scanned =
    'refuseSamples(scanned, plan);\n        const keyed = keys.size === 0 ? scanned : joinedOnKeys(scanned, keys);';
  const changed = `refuseSamples(scanned, plan);\n        const holed = mapQuery(scanned, { ${visit} });\n        const keyed = keys.size === 0 ? holed : joinedOnKeys(holed, keys);`;
  return [HELPERS, compiler('govern/govern.js', scanned, changed), ...NO_PROOF];
}

const query = (condition: string, result: string): readonly Patch[] =>
  rewrite(`query: (q) => ${condition} ? ${result} : q`);
const joined = (type: string, side: 'left' | 'right'): readonly Patch[] =>
  query(
    `q.kind === 'select' && q.from?.kind === 'join' && q.from.type === '${type}'`,
    `{ ...q, from: { ...q.from, ${side}: open(q.from.${side}) } }`,
  );

/** Each scan of customers also has the email before its mask. */
const RAW_EMAIL = [
  compiler(
    'govern/scan.js',
    "import { allLeaves } from '../plan/walk.js';",
    "import { allLeaves } from '../plan/walk.js';\nimport { baseColumn } from '../plan/nodes.js';",
  ),
  compiler(
    'govern/scan.js',
    'columns: Object.freeze([...shown, ...joined, ...counted]),',
    "columns: Object.freeze([...shown, ...joined, ...counted, ...rules.filter((r) => r.column.name === 'email').map((r) => ({ name: 'email#raw', type: r.column.type, expr: baseColumn(r.column), masked: 'none' }))]),",
  ),
];
const unmasked = (part: string): readonly Patch[] => [
  ...RAW_EMAIL,
  ...query(
    "q.kind === 'select' && q.from?.kind === 'governed' && q.from.relation.name === 'customer'",
    `{ ...q, ${part} }`,
  ),
];
/** Reads emails before the mask within nodes of a kind. */
const unmaskedIn = (kind: string): readonly Patch[] => [
  ...RAW_EMAIL,
  ...rewrite(`expr: (e) => e.kind === '${kind}' ? holeChildren(e, raw, (q) => q) : e`),
];

const ROWS: readonly AttackClass[] = ['joins', 'aggregates', 'predicates'];
const MASKS: readonly AttackClass[] = ['casts', 'predicates', 'joins', 'errors'];
const CACHES: readonly AttackClass[] = ['cursors'];

const wire = (name: string, classes: readonly AttackClass[], patches: readonly Patch[]): Hole => ({
  name,
  on: 'wire',
  classes,
  patches,
});

const FILTERS: readonly Hole[] = [
  wire('no row filter', ROWS, [
    compiler('govern/scan.js', '        filter,\n        pushed', '        filter: null,\n        pushed'),
    ...NO_PROOF,
  ]),
  wire('no filter on the right of a join', ROWS, joined('inner', 'right')),
  wire('no filter on the right of a LEFT JOIN', ROWS, joined('left', 'right')),
  wire('no filter on the left of a LEFT JOIN', ROWS, joined('left', 'left')),
  wire(
    'no filter under FULL JOIN',
    ROWS,
    query("q.kind === 'select' && q.from?.kind === 'join' && q.from.type === 'full'", 'openQuery(q)'),
  ),
  wire(
    'no filter in the second half of a UNION',
    ROWS,
    query("q.kind === 'set_operation'", '{ ...q, right: openQuery(q.right) }'),
  ),
  wire(
    'no filter in EXISTS',
    ROWS,
    rewrite("expr: (e) => e.kind === 'exists' ? { ...e, query: openQuery(e.query) } : e"),
  ),
  wire(
    'no filter in a scalar subquery',
    ROWS,
    rewrite("expr: (e) => e.kind === 'scalar_query' ? { ...e, query: openQuery(e.query) } : e"),
  ),
  wire(
    'no filter in IN',
    ROWS,
    rewrite("expr: (e) => e.kind === 'in_query' ? { ...e, query: openQuery(e.query) } : e"),
  ),
  wire(
    'no filter in WITH',
    ROWS,
    query(
      "q.kind !== 'values' && q.with.length > 0",
      '{ ...q, with: q.with.map((t) => ({ ...t, query: openQuery(t.query) })) }',
    ),
  ),
  wire(
    'count(*) without the filter',
    ROWS,
    query(
      "q.kind === 'select' && q.where.length === 0 && q.outputs.every((o) => o.expr.kind === 'aggregate' && o.expr.args.length === 0)",
      'openQuery(q)',
    ),
  ),
  wire(
    'no filter for statements with parameters',
    CACHES,
    query("q.kind === 'select' && plan.clientOids.length > 0", 'openQuery(q)'),
  ),
  wire(
    'TABLESAMPLE let through',
    ['inference'],
    [
      compiler(
        'govern/scan.js',
        "if (leaf.kind !== 'governed' || leaf.sample === undefined)",
        'if (leaf !== null)',
      ),
      ...NO_PROOF,
    ],
  ),
  wire(
    'minimum of a group not enforced',
    ['aggregates'],
    [compiler('govern/govern.js', 'enforceMinima(keyed, into)', 'keyed'), ...NO_PROOF],
  ),
  wire(
    'groups in the order of statistics',
    ['inference'],
    [
      compiler(
        'govern/govern.js',
        'breakTies(inEnumOrder(plan.query, labelled, plan, slots), accesses, whole)',
        'inEnumOrder(plan.query, labelled, plan, slots)',
      ),
    ],
  ),
];

const CELLS: readonly Hole[] = [
  wire('no mask', MASKS, [
    compiler('govern/mask.js', "masked === 'all' ? hidden :", "masked === 'all' ? value :"),
    ...NO_PROOF,
  ]),
  wire('mask after WHERE', MASKS, unmasked('where: q.where.map(raw)')),
  wire('no mask in ORDER BY', MASKS, unmasked('orderBy: holeSort(q.orderBy, raw)')),
  wire('no mask in aggregates', MASKS, unmaskedIn('aggregate')),
  wire('no mask in windows', MASKS, unmaskedIn('window')),
  wire('no mask in whole rows', MASKS, unmaskedIn('row_text')),
  wire('no mask in calls of functions', MASKS, unmaskedIn('call')),
  wire('no mask for keys of joins', MASKS, [
    compiler(
      'govern/mask.js',
      "const hidden = rule.mask === 'hash' ? masking(rule, nothing, slots) : nothing;",
      'const hidden = baseColumn(rule.column);',
    ),
    compiler(
      'govern/keys.js',
      "if ((rule.masked === 'all' && rule.mask !== 'hash') || nullSafe || fixed.has(ref)) {",
      'if (rule === null) {',
    ),
    compiler(
      'govern/keys.js',
      "if (rule.masked !== 'none' && (crossesModes || !isHashed(rule)))",
      'if (rule === null)',
    ),
    ...NO_PROOF,
  ]),
];

const BARRIERS: readonly Hole[] = [
  wire(
    'no guard for conditions that can fail',
    ['errors', 'predicates'],
    [compiler('govern/govern.js', 'withBarrier(sent, plan.literals, into)', 'sent'), ...NO_PROOF],
  ),
  wire(
    'no guard in ON',
    ['errors', 'joins', 'session'],
    [
      compiler('govern/barrier/barrier.js', "if (query.from?.kind === 'join')", 'if (query === null)'),
      ...NO_PROOF,
    ],
  ),
  wire(
    'no guard in HAVING',
    ['errors'],
    [
      compiler('govern/barrier/barrier.js', 'for (const c of query.having) {', 'for (const c of []) {'),
      ...NO_PROOF,
    ],
  ),
  wire(
    'division counted as harmless',
    ['errors'],
    [
      compiler(
        'govern/barrier/harmless.js',
        'return isListed(expr, context) || cannotFail(expr, context.literals);',
        "return expr.kind === 'operation' || isListed(expr, context) || cannotFail(expr, context.literals);",
      ),
      ...NO_PROOF,
    ],
  ),
  wire(
    'casts counted as harmless',
    ['errors', 'predicates'],
    [
      compiler(
        'govern/barrier/harmless.js',
        'return isListed(expr, context) || cannotFail(expr, context.literals);',
        "return (expr.kind === 'operation' && expr.left !== null && expr.left.kind === 'cast') || isListed(expr, context) || cannotFail(expr, context.literals);",
      ),
      ...NO_PROOF,
    ],
  ),
];

const CALLERS: readonly Hole[] = [
  wire('plans kept without the rights of their caller', CACHES, [
    gateway(
      'src/ask/data/planning.js',
      'catalog.version} \x24{access.signature} \x24{world}',
      'catalog.version} \x24{world}',
    ),
  ]),
  wire('permits kept without their caller', CACHES, [
    gateway('src/ask/routes/route.js', 'const key = JSON.stringify([', "const key = 'all'; void (["),
  ]),
  {
    ...wire('answers kept without the values of attributes', CACHES, [
      gateway(
        'src/ask/data/answer-cache.js',
        'for (const [i, { bytes, format }] of values.entries()) {',
        'for (const [i, { bytes, format }] of [].entries()) {',
      ),
    ]),
    manifest: (text) =>
      text.replace(
        'purchase: { source: db.public.purchase,',
        'purchase: { source: db.public.purchase, cache: { max_age: 300 },',
      ),
  },
  wire('attributes kept with the rights of another caller', CACHES, [
    gateway(
      'policy/access.js',
      'attributeValues: (index, name) => {\n            const value = chain[index]',
      'attributeValues: caches.hole ??= (index, name) => {\n            const value = chain[index]',
    ),
  ]),
  wire('prepared statements of other sessions', CACHES, [
    gateway(
      'src/surfaces/pg/sql-prepare.js',
      'const statement = statements.statement(name);',
      'const statement = statements.statement(name) ?? globalThis.hole?.get(name);',
    ),
    gateway(
      'src/surfaces/pg/sql-prepare.js',
      'session.statements.storeStatement(name, statement, text);',
      '(globalThis.hole ??= new Map()).set(name, statement);\n                session.statements.storeStatement(name, statement, text);',
    ),
  ]),
  wire('cursors of other sessions', CACHES, [
    gateway(
      'src/surfaces/pg/cursor.js',
      '#byName = new Map();',
      '#byName = (globalThis.hole ??= new Map());',
    ),
  ]),
];

const CATALOGS: readonly Hole[] = [
  wire(
    'EXPLAIN with the plan of the database',
    ['catalog'],
    [
      gateway(
        'src/ask/data/explain.js',
        'return { plan, caller, upstream: statement',
        'const lines = (await upstreamPlan(parts, caller, plan, signal)).plan.split("\\n"); return { plan, caller, lines, upstream: statement',
      ),
      gateway(
        'src/surfaces/pg/explain-statement.js',
        'const { plan } = await explainPlan(',
        'const { plan, lines } = await explainPlan(',
      ),
      gateway(
        'src/surfaces/pg/explain-statement.js',
        ': planLines(shownPlan);',
        ': [...planLines(shownPlan), ...lines];',
      ),
    ],
  ),
  wire(
    'hidden columns in the catalog',
    ['catalog'],
    [
      gateway(
        'src/surfaces/catalog/model.js',
        'relation.columns.filter((c) => isShown(c, rights))',
        'relation.columns.map((c) => (isShown(c, rights) ? c : { ...c, sensitivity: null }))',
      ),
    ],
  ),
  wire('catalog of another caller', CACHES, [
    gateway(
      'src/surfaces/catalog/catalogs.js',
      'const instance = this.#instances.get(model.signature);',
      'const instance = this.#instances.get(model.signature) && [...this.#instances.values()].at(-1);',
    ),
  ]),
  wire(
    'names of hidden entities in hints',
    ['errors', 'casts'],
    [compiler('bind/from/from.js', 'ctx.access.relations.keys()', 'ctx.catalog.relations.keys()')],
  ),
  {
    name: 'hidden columns in the schema of agents',
    on: 'mcp',
    classes: ['catalog'],
    patches: [
      compiler(
        'govern/visible-columns.js',
        'export function visibleColumns(relation, catalog, access) {',
        `export function visibleColumns(relation, catalog, access) {
    const own = ownColumns(relation, catalog, access);
    const other = relation.columns.filter((c) => !own.some((o) => o.column.name === c.name));
    return own.length === 0 ? own : [...own, ...other.map((column) => ({ column, masked: 'all', rows: true, joinable: false }))];
}
function ownColumns(relation, catalog, access) {`,
      ),
    ],
  },
];

export const HOLES: readonly Hole[] = [...FILTERS, ...CELLS, ...BARRIERS, ...CALLERS, ...CATALOGS];
