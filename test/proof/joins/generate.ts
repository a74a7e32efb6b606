import type { Dice } from '../oracle/dice.js';

/** What the gateway must answer: a code, or null for rows. */
export type Verdict = 'E0514' | 'E0515' | null;

/** A question that joins two relations, or three, and what must come of it under each switch. */
export interface Question {
  readonly sql: string;
  readonly declared: Verdict;
  readonly any: Verdict;
  readonly shape: string;
  readonly kind: string;
  readonly wrapper: string;
}

// ---------------------------------------------------------------- kinds of keys

/** One side of an equality: a column, or what is made of one. */
interface Term {
  readonly column: string;
  readonly made: 'column' | 'computed' | 'cast' | 'aggregate';
  readonly key: boolean;
}

interface Kind {
  readonly name: string;
  readonly left: string;
  readonly right: string;
  readonly pairs: readonly (readonly [left: Term, right: Term])[];
  /** Its keys are never shown in the clear. */
  readonly masked?: true;
  /** A number on each side that is not a key. */
  readonly numbers: readonly [string, string];
  /** A bridge is read in joins alone, so that nothing is derived of it. */
  readonly bridge?: true;
}

const key = (column: string): Term => ({ column, made: 'column', key: true });
const plain = (column: string): Term => ({ column, made: 'column', key: false });
const made = (how: 'computed' | 'cast' | 'aggregate', column: string): Term => ({
  column,
  made: how,
  key: false,
});

const SHOP = { left: 'customer', right: 'purchase', numbers: ['score', 'amount'] } as const;
const LAND = { left: 'plot', right: 'stay', numbers: ['size', 'nights'] } as const;
const CLUB = { left: 'member', right: 'letter', numbers: ['since', 'pages'] } as const;

const KINDS: readonly Kind[] = [
  { name: 'sealed', ...SHOP, pairs: [[key('id'), key('customer_id')]] },
  { name: 'left unsealed', ...SHOP, pairs: [[plain('score'), key('customer_id')]] },
  { name: 'right unsealed', ...SHOP, pairs: [[key('id'), plain('amount')]] },
  { name: 'unsealed', ...SHOP, pairs: [[plain('score'), plain('amount')]] },
  { name: 'computed', ...SHOP, pairs: [[key('id'), made('computed', 'customer_id')]] },
  { name: 'cast', ...SHOP, pairs: [[key('id'), made('cast', 'customer_id')]] },
  { name: 'aggregate', ...SHOP, pairs: [[key('id'), made('aggregate', 'customer_id')]] },
  {
    name: 'composite',
    ...LAND,
    pairs: [
      [key('country'), key('country')],
      [key('no'), key('no')],
    ],
  },
  { name: 'part of a composite', ...LAND, pairs: [[key('no'), key('no')]] },
  {
    name: 'composite with another column',
    ...LAND,
    pairs: [
      [key('country'), key('country')],
      [key('no'), plain('nights')],
    ],
  },
  { name: 'masked', ...CLUB, pairs: [[key('code'), key('code')]], masked: true },
  { name: 'computed of a mask', ...CLUB, pairs: [[key('code'), made('computed', 'code')]], masked: true },
  {
    name: 'bridge',
    left: 'customer',
    right: 'likes',
    numbers: ['score', 'stars'],
    pairs: [[key('id'), key('customer_id')]],
    bridge: true,
  },
  {
    name: 'bridge, unsealed',
    left: 'customer',
    right: 'likes',
    numbers: ['score', 'stars'],
    pairs: [[key('id'), plain('stars')]],
    bridge: true,
  },
];

function sqlOf({ column, made: how }: Term, alias: string): string {
  const name = `${alias}.${column}`;
  switch (how) {
    case 'column':
      return name;
    case 'computed':
      return column === 'code' ? `${name} || ''` : `${name} + 0`;
    case 'cast':
      return `cast(${name} as int8)`;
    case 'aggregate':
      return `max(${name})`;
    default: {
      const unknown: never = how;
      return unknown;
    }
  }
}

// ---------------------------------------------------------------- relations

/** A relation as FROM has it, and what its columns are. */
interface Relation {
  readonly ctes: readonly string[];
  readonly item: string;
  /** The terms, one for each pair, and the number that is not a key. */
  readonly columns: readonly Column[];
}

interface Column {
  readonly sql: string;
  readonly sealed: boolean;
  /** True if it is a column, and not an expression. */
  readonly bare: boolean;
}

/** Makes one relation of the query `select` with columns k1, k2, …; `breaks` says which a wrapper unseals. */
interface Wrapper {
  readonly name: string;
  readonly wrap: (select: string, other: string, alias: string) => { ctes: readonly string[]; item: string };
  readonly breaks?: true;
}

const derived = (alias: string, query: string) => ({ ctes: [], item: `(${query}) ${alias}` });

const WRAPPERS: readonly Wrapper[] = [
  { name: 'derived', wrap: (q, _, a) => derived(a, q) },
  { name: 'derived twice', wrap: (q, _, a) => derived(a, `select * from (${q}) d`) },
  { name: 'grouped', wrap: (q, _, a) => derived(a, `select * from (${q}) d group by ${positions(q)}`) },
  { name: 'distinct', wrap: (q, _, a) => derived(a, `select distinct * from (${q}) d`) },
  { name: 'limited', wrap: (q, _, a) => derived(a, `select * from (${q}) d order by 1 limit 5`) },
  { name: 'CTE', wrap: (q, _, a) => ({ ctes: [`t_${a} as (${q})`], item: `t_${a} ${a}` }) },
  {
    name: 'nested CTE',
    wrap: (q, _, a) => ({
      ctes: [`t_${a} as (with s as materialized (${q}) select * from s)`],
      item: `(select * from t_${a}) ${a}`,
    }),
  },
  { name: 'LATERAL', wrap: (q, _, a) => ({ ctes: [], item: `lateral (${q}) ${a}` }) },
  { name: 'UNION', wrap: (q, _, a) => derived(a, `${q} union ${q}`) },
  { name: 'UNION ALL', wrap: (q, _, a) => derived(a, `${q} union all ${q}`) },
  { name: 'INTERSECT', wrap: (q, _, a) => derived(a, `${q} intersect ${q}`) },
  { name: 'EXCEPT', wrap: (q, _, a) => derived(a, `${q} except ${q}`) },
  { name: 'UNION of a computed arm', wrap: (q, o, a) => derived(a, `${q} union ${o}`), breaks: true },
  { name: 'EXCEPT of a computed arm', wrap: (q, o, a) => derived(a, `${q} except all ${o}`), breaks: true },
];

function positions(query: string): string {
  return [...query.matchAll(/ as k(\d)/g)].map((m) => m[1]).join(', ');
}

/** The relation itself, without any query around it. */
const DIRECT = 'direct';

/** @param side 0 is the left one */
function relationOf(kind: Kind, side: 0 | 1, wrapper: Wrapper | null, alias: string): Relation {
  const table = side === 0 ? kind.left : kind.right;
  const terms = [...kind.pairs.map((p) => p[side]), plain(kind.numbers[side])];
  if (wrapper === null) {
    const columns = terms.map((t) => ({ sql: sqlOf(t, alias), sealed: t.key, bare: t.made === 'column' }));
    return { ctes: [], item: `${table} ${alias}`, columns };
  }
  const aggregates = terms.some((t) => t.made === 'aggregate');
  const list = (of: (t: Term) => string): string => terms.map((t, i) => `${of(t)} as k${i + 1}`).join(', ');
  const own = (t: Term): string =>
    aggregates && t.made !== 'aggregate' ? `min(i.${t.column})` : sqlOf(t, 'i');
  const computed = (t: Term): string => (isText(t) ? `${own(t)} || ''` : `${own(t)} + 0`);
  const { ctes, item } = wrapper.wrap(
    `select ${list(own)} from ${table} i`,
    `select ${list(computed)} from ${table} i`,
    alias,
  );
  const columns = terms.map((t, i) => ({
    sql: `${alias}.k${i + 1}`,
    sealed: t.key && t.made === 'column' && wrapper.breaks !== true,
    bare: true,
  }));
  return { ctes, item, columns };
}

function isText({ column }: Term): boolean {
  return column === 'code' || column === 'country';
}

// ---------------------------------------------------------------- shapes

/** What stands between two relations. */
interface Combined {
  readonly from: string;
  readonly where?: string;
  readonly select?: string;
  /** True if the keys are joined on at all, and on nothing else: then it depends on the keys. */
  readonly onKeysAlone: boolean;
  /** True if one sealed pair is enough, as the others are filters of WHERE. */
  readonly onePairWill?: true;
  /** True if the keys are equated as columns: a masked one is then E0515 under `any`; default: if they are columns. */
  readonly equates?: 'never' | 'always';
}

interface Shape {
  readonly name: string;
  readonly combine: (a: Relation, b: Relation) => Combined;
  /** True if `b` may be the bridge that is read there alone, or must be a query. */
  readonly needs?: 'a query' | 'a table' | 'pairs';
}

const equalities = (a: Relation, b: Relation): readonly string[] =>
  keysOf(a).map((c, i) => `${c.sql} = ${keysOf(b)[i]?.sql}`);
const keysOf = ({ columns }: Relation): readonly Column[] => columns.slice(0, -1);
const numberOf = ({ columns }: Relation): string => columns.at(-1)?.sql ?? '';
const all = (parts: readonly string[]): string => parts.join(' and ');
const tuple = (columns: readonly Column[]): string => `(${columns.map((c) => c.sql).join(', ')})`;

function on(join: string, condition: (a: Relation, b: Relation) => string, onKeysAlone: boolean) {
  return (a: Relation, b: Relation): Combined => ({
    from: `${a.item} ${join} ${b.item} on ${condition(a, b)}`,
    onKeysAlone,
  });
}

const byKeys = (a: Relation, b: Relation): string => all(equalities(a, b));
const within = (b: Relation, where: readonly string[], select = '1'): string =>
  `select ${select} from ${b.item} where ${all(where)}`;

const SHAPES: readonly Shape[] = [
  { name: 'ON', combine: on('join', byKeys, true) },
  { name: 'ON, LEFT', combine: on('left join', byKeys, true) },
  { name: 'ON, RIGHT', combine: on('right join', byKeys, true) },
  { name: 'ON, FULL', combine: on('full join', byKeys, true) },
  { name: 'ON and true', combine: on('join', (a, b) => `${byKeys(a, b)} and true`, true) },
  {
    name: 'ON and a condition of one side',
    combine: on('left join', (a, b) => `${byKeys(a, b)} and ${numberOf(b)} > 1`, false),
  },
  {
    name: 'ON and a condition of both sides',
    combine: on('join', (a, b) => `${byKeys(a, b)} and ${numberOf(a)} <= ${numberOf(b)}`, false),
  },
  {
    name: 'ON and another equality',
    combine: on('join', (a, b) => `${byKeys(a, b)} and ${numberOf(a)} = ${numberOf(b)}`, false),
  },
  {
    name: 'ON or',
    combine: (a, b) => ({
      from: `${a.item} join ${b.item} on ${byKeys(a, b)} or ${numberOf(a)} = 9`,
      onKeysAlone: false,
      equates: 'never',
    }),
  },
  {
    name: 'null-safe',
    combine: on(
      'join',
      (a, b) => all(keysOf(a).map((c, i) => `${c.sql} is not distinct from ${keysOf(b)[i]?.sql}`)),
      false,
    ),
  },
  {
    name: 'inequality',
    combine: (a, b) => ({
      from: `${a.item} join ${b.item} on ${keysOf(a)[0]?.sql} <= ${keysOf(b)[0]?.sql}`,
      onKeysAlone: false,
      equates: 'never',
    }),
  },
  {
    name: 'rows',
    needs: 'pairs',
    combine: on('join', (a, b) => `${tuple(keysOf(a))} = ${tuple(keysOf(b))}`, true),
  },
  {
    name: 'USING',
    needs: 'a query',
    combine: (a, b) => ({
      from: `${a.item} join ${b.item} using (${keysOf(a).map((_, i) => `k${i + 1}`)})`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'NATURAL',
    needs: 'a query',
    // The number has one name on both sides, too.
    combine: (a, b) => ({ from: `${a.item} natural join ${b.item}`, onKeysAlone: false }),
  },
  {
    name: 'comma',
    combine: (a, b) => ({
      from: `${a.item}, ${b.item}`,
      where: byKeys(a, b),
      onKeysAlone: true,
      onePairWill: true,
    }),
  },
  {
    name: 'comma and a filter of both',
    combine: (a, b) => ({
      from: `${a.item}, ${b.item}`,
      where: `${byKeys(a, b)} and ${numberOf(a)} <= ${numberOf(b)}`,
      onKeysAlone: true,
      onePairWill: true,
    }),
  },
  {
    name: 'comma without a link',
    combine: (a, b) => ({
      from: `${a.item}, ${b.item}`,
      where: `${numberOf(a)} < ${numberOf(b)}`,
      onKeysAlone: false,
      equates: 'never',
    }),
  },
  {
    name: 'CROSS',
    combine: (a, b) => ({ from: `${a.item} cross join ${b.item}`, onKeysAlone: false, equates: 'never' }),
  },
  {
    name: 'CROSS with WHERE',
    combine: (a, b) => ({ from: `${a.item} cross join ${b.item}`, where: byKeys(a, b), onKeysAlone: false }),
  },
  {
    name: 'correlated LATERAL',
    combine: (a, b) => ({
      from: `${a.item} cross join lateral (${within(b, equalities(a, b), `${numberOf(b)} as n`)}) x`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'LATERAL and another condition',
    combine: (a, b) => ({
      from: `${a.item} left join lateral (${within(b, [...equalities(a, b), `${numberOf(b)} >= ${numberOf(a)}`])}) x on true`,
      onKeysAlone: false,
    }),
  },
  {
    name: 'IN',
    combine: (a, b) => ({
      from: a.item,
      where: `${keysOf(a)[0]?.sql} in (select ${keysOf(b)[0]?.sql} from ${b.item})`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'NOT IN',
    combine: (a, b) => ({
      from: a.item,
      where: `${keysOf(a)[0]?.sql} not in (select ${keysOf(b)[0]?.sql} from ${b.item})`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'row IN',
    needs: 'pairs',
    combine: (a, b) => ({
      from: a.item,
      where: `${tuple(keysOf(a))} in (select ${keysOf(b).map((c) => c.sql)} from ${b.item})`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'EXISTS',
    combine: (a, b) => ({
      from: a.item,
      where: `exists (${within(b, equalities(a, b))})`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'NOT EXISTS',
    combine: (a, b) => ({
      from: a.item,
      where: `not exists (${within(b, equalities(a, b))})`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'EXISTS of two arms',
    combine: (a, b) => ({
      from: a.item,
      where: `exists (${within(b, equalities(a, b))} union all ${within(b, equalities(a, b))})`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'EXISTS of an arm without a link',
    combine: (a, b) => ({
      from: a.item,
      where: `exists (${within(b, equalities(a, b))} union all ${within(b, ['true'])})`,
      onKeysAlone: false,
    }),
  },
  {
    name: 'EXISTS and another condition',
    combine: (a, b) => ({
      from: a.item,
      where: `exists (${within(b, [...equalities(a, b), `${numberOf(b)} >= ${numberOf(a)}`])})`,
      onKeysAlone: false,
    }),
  },
  {
    name: 'EXISTS without a link',
    combine: (a, b) => ({
      from: a.item,
      where: `exists (${within(b, [`${numberOf(b)} > 1`])})`,
      onKeysAlone: false,
      equates: 'never',
    }),
  },
  {
    name: 'scalar subquery',
    combine: (a, b) => ({
      from: a.item,
      select: `(${within(b, equalities(a, b), 'count(*)')})`,
      onKeysAlone: true,
    }),
  },
  {
    name: 'scalar subquery and an outer value',
    combine: (a, b) => ({
      from: a.item,
      select: `(${within(b, equalities(a, b), `max(${numberOf(b)} + ${numberOf(a)})`)})`,
      onKeysAlone: false,
    }),
  },
  {
    name: 'ANY of an array',
    combine: (a, b) => ({
      from: a.item,
      where: `${keysOf(a)[0]?.sql} = any (array(select ${keysOf(b)[0]?.sql} from ${b.item}))`,
      onKeysAlone: false,
      equates: 'never',
    }),
  },
  {
    name: 'rows of an array',
    combine: (a, b) => ({
      from: `${a.item} join unnest(array(select ${keysOf(b)[0]?.sql} from ${b.item})) u (k) on u.k = ${keysOf(a)[0]?.sql}`,
      onKeysAlone: false,
      equates: 'always',
    }),
  },
  {
    name: 'two levels up',
    combine: (a, b) => ({
      from: a.item,
      where: `exists (select 1 from purchase p, customer c where p.customer_id = c.id and exists (${within(b, equalities(a, b))}))`,
      onKeysAlone: false,
    }),
  },
];

// ---------------------------------------------------------------- questions

/** A third relation that is joined to the left one of the shop. */
interface Third {
  readonly item: string;
  readonly sealed: boolean;
}

const THIRDS: readonly Third[] = [
  { item: 'join purchase third on third.customer_id = ‹id›', sealed: true },
  { item: 'join purchase third on third.amount = ‹id›', sealed: false },
  { item: 'join (select customer_id as k from purchase) third on third.k = ‹id›', sealed: true },
  { item: 'join (select customer_id + 1 as k from purchase) third on third.k = ‹id›', sealed: false },
  { item: 'cross join (values (1)) third (k)', sealed: false },
  { item: 'cross join lateral unnest(array[‹id›]) third (k)', sealed: true },
  { item: 'cross join lateral (select ‹id› + 1 as k) third', sealed: true },
  { item: 'join generate_series(1, 3) third (k) on third.k = ‹id›', sealed: false },
];

/** Null where the parts do not go together. */
function questionOf(shape: Shape, kind: Kind, wrapper: Wrapper | null, dice: Dice): Question | null {
  const named = shape.needs === 'a query';
  if (shape.needs === 'pairs' && kind.pairs.length < 2) return null;
  if (kind.bridge === true && (wrapper !== null || named)) return null;
  if (wrapper === null && (named || kind.pairs.some(([, t]) => t.made === 'aggregate'))) return null;
  // A LATERAL query stands at the right of what it may look at, and FULL and RIGHT JOIN have none.
  if (wrapper?.name === 'LATERAL' && /FULL|RIGHT/.test(shape.name)) return null;
  const around = named ? dice.of(WRAPPERS.slice(0, 2)) : dice.chance(0.3) ? dice.of(PASSING) : null;
  const left = relationOf(kind, 0, around, 'a');
  const right = relationOf(kind, 1, wrapper, 'b');
  const combined = shape.combine(left, right);
  const first = [keysOf(left).slice(0, 1), keysOf(right).slice(0, 1)];
  const one = /^(?:NOT )?IN$/.test(shape.name);
  const [ours, theirs] = one ? first : [keysOf(left), keysOf(right)];
  const pairs = (ours ?? []).map((c, i) => [c, theirs?.[i]] as const);
  const sealedPairs = pairs.filter(([a, b]) => a.sealed && b?.sealed === true).length;
  const enough = combined.onePairWill === true ? 1 : pairs.length;
  const sealed = combined.onKeysAlone && sealedPairs >= enough;
  const bare = pairs.every(([a, b]) => a.bare && b?.bare === true);
  const equated = combined.equates === 'always' || (combined.equates !== 'never' && bare);
  const third = thirdOf(kind, left, combined, dice);
  const masked: Verdict = kind.masked === true && equated ? 'E0515' : null;
  const ctes = [...left.ctes, ...right.ctes];
  return {
    sql: [
      ...(ctes.length === 0 ? [] : [`with ${ctes.join(', ')}`]),
      `select ${combined.select ?? 'count(*)'} from ${combined.from}`,
      ...(third === null ? [] : [third.item]),
      ...(combined.where === undefined ? [] : [`where ${combined.where}`]),
    ].join(' '),
    declared: !sealed || third?.sealed === false ? 'E0514' : masked,
    any: masked,
    shape: shape.name,
    kind: kind.name,
    wrapper: wrapper?.name ?? DIRECT,
  };
}

const PASSING = WRAPPERS.filter((w) => w.breaks !== true && w.name !== 'LATERAL');

function thirdOf(kind: Kind, left: Relation, { from }: Combined, dice: Dice): Third | null {
  const [id] = left.columns;
  const fits = kind.left === 'customer' && id?.sealed === true && from === left.item && dice.chance(0.3);
  if (!fits) return null;
  const third = dice.of(THIRDS);
  return { ...third, item: third.item.replace('‹id›', id.sql) };
}

/** Every pair of shape and kind, and of wrapper and kind, the rest by chance; then `more`. */
export function questionsFrom(dice: Dice, more: number): readonly Question[] {
  const found: Question[] = [];
  const add = (shape: Shape, kind: Kind, wrapper: Wrapper | null): void => {
    const question = questionOf(shape, kind, wrapper, dice);
    if (question !== null) found.push(question);
  };
  const wrappers = [null, ...WRAPPERS];
  for (const shape of SHAPES)
    for (const kind of KINDS) add(shape, kind, kind.bridge === true ? null : dice.of(wrappers));
  for (const wrapper of wrappers) for (const kind of KINDS) add(dice.of(SHAPES), kind, wrapper);
  for (let i = 0; i < more; i++) add(dice.of(SHAPES), dice.of(KINDS), dice.of(wrappers));
  return found;
}
