import * as compiler from 'osl-compiler';
import {
  type Access,
  type Catalog,
  compile,
  type GovernedPlan,
  type GovernedStore,
  InternalError,
  type Relation,
} from 'osl-compiler';
import t from 'tap';
import { CALLERS, CATALOG } from '../golden/catalog.js';
import {
  type Expr,
  type FromItem,
  type GovernedScan,
  type Query,
  requireOperator,
  type Slot,
  verify,
  walk,
} from './internals.js';
import { worldOf } from './probes.js';

/**
 * What makes plans need not be trusted: whatever it leaves out of a scan, swaps in it or adds to it, the verifier refuses
 * the plan, from the catalog and the access of its caller alone.
 */
interface Draft {
  readonly query: Query;
  readonly slots: readonly Slot[];
}
type Column = GovernedScan['columns'][number];
/** A fault of what makes plans: `made` gives the plan with it, which is another one than before. */
interface Fault {
  readonly name: string;
  readonly caller: string;
  readonly osql: string;
  readonly made: (plan: Draft, catalog: Catalog) => Draft;
}

const scans =
  (change: (scan: GovernedScan, catalog: Catalog) => GovernedScan): Fault['made'] =>
  ({ query, slots }, catalog) => ({
    slots,
    query: walk.mapQuery(query, { item: (i: FromItem) => (i.kind === 'governed' ? change(i, catalog) : i) }),
  });
const columns = (change: (column: Column, scan: GovernedScan) => Column): Fault['made'] =>
  scans((scan) => ({ ...scan, columns: scan.columns.map((c) => change(c, scan)) }));
const slotsOf =
  (change: (slot: Slot) => Slot): Fault['made'] =>
  ({ query, slots }) => ({ query, slots: slots.map(change) });

function relation(catalog: Catalog, name: string): Relation {
  const found = catalog.relations.get(name);
  if (found === undefined) throw new Error(`no relation ${name}`);
  return found;
}

function base(of: Relation, name: string): Expr {
  const column = of.columns.find((c) => c.name === name);
  if (column === undefined) throw new Error(`no column ${name}`);
  return { kind: 'base', column: column.physical, type: column.type };
}

function deeply(e: Expr, change: (e: Expr) => Expr): Expr {
  return change(
    walk.mapChildren(
      e,
      (child) => deeply(child, change),
      (q) => q,
    ),
  );
}

/** The condition without the CASE that lets only visible rows reach it. */
function withoutGuards(condition: Expr): Expr {
  return deeply(condition, (e) => (e.kind === 'case' ? (e.arms[0]?.result ?? e) : e));
}

const TRUE: Expr = { kind: 'boolean', value: true, type: 'bool' };
const FALSE: Expr = { ...TRUE, value: false };
const EMAIL = 'select id, email from osl.entities.customer';
const REGION = 'select id, name from osl.entities.customer';
const KEYED = 'select a.id, b.id from osl.entities.tag a join osl.entities.tag b on a.label = b.label';
const GROUPS = 'select region, count(*) from osl.entities.customer group by region';
const ASKED = "select id from osl.entities.order where id / (id - 10) > 3 and status = 'open'";

const FAULTS: readonly Fault[] = [
  {
    name: 'the row filter is dropped',
    caller: 'regional',
    osql: REGION,
    made: scans((s) => ({ ...s, filter: null })),
  },
  {
    name: 'the row filter is true',
    caller: 'regional',
    osql: REGION,
    made: scans((s) => ({ ...s, filter: TRUE })),
  },
  {
    name: 'the row filter is ORed with another condition',
    caller: 'regional',
    osql: REGION,
    made: scans((s) => ({ ...s, filter: s.filter && { kind: 'or', args: [s.filter, FALSE], type: 'bool' } })),
  },
  {
    name: 'one of a chain alone filters',
    caller: 'chain',
    osql: REGION,
    made: scans((s) => ({ ...s, filter: s.filter?.kind === 'and' ? (s.filter.args[0] ?? null) : s.filter })),
  },
  {
    name: 'the attribute of another subject filters',
    caller: 'chain',
    osql: REGION,
    made: slotsOf((s) => (s.kind === 'attribute' ? { ...s, subject: 0 } : s)),
  },
  {
    name: 'another attribute filters',
    caller: 'regional',
    osql: REGION,
    made: slotsOf((s) => (s.kind === 'attribute' ? { ...s, name: 'team' } : s)),
  },
  {
    name: 'a parameter of the client filters',
    caller: 'regional',
    osql: REGION,
    made: slotsOf((s) =>
      s.kind === 'attribute' ? { kind: 'client', type: s.type, index: 0, declared: null } : s,
    ),
  },
  {
    name: 'a literal of the filter is another one',
    caller: 'desk',
    osql: 'select id from osl.entities.ticket',
    made: slotsOf((s) => (s.kind === 'literal' ? { ...s, value: 'bob' } : s)),
  },
  {
    name: 'the filter of another caller',
    caller: 'dear',
    osql: 'select id from osl.entities.order',
    made: scans((s) => ({ ...s, filter: null })),
  },
  {
    name: 'a mask is dropped',
    caller: 'masked',
    osql: EMAIL,
    made: columns((c, s) => ({ ...c, expr: base(s.relation, c.name) })),
  },
  {
    name: 'a mask is dropped, and the column said to be clear',
    caller: 'masked',
    osql: EMAIL,
    made: columns((c, s) => ({ ...c, masked: 'none', expr: base(s.relation, c.name) })),
  },
  {
    name: 'a mask of some rows covers others',
    caller: 'overlap',
    osql: EMAIL,
    made: columns((c) =>
      c.expr.kind === 'case'
        ? { ...c, expr: { ...c.expr, arms: c.expr.arms.map((a) => ({ ...a, when: TRUE })) } }
        : c,
    ),
  },
  {
    name: 'value and mask are swapped',
    caller: 'overlap',
    osql: EMAIL,
    made: columns((c) => {
      const [arm] = c.expr.kind === 'case' ? c.expr.arms : [];
      if (c.expr.kind !== 'case' || arm === undefined) return c;
      return {
        ...c,
        expr: { ...c.expr, arms: [{ ...arm, result: c.expr.otherwise }], otherwise: arm.result },
      };
    }),
  },
  {
    name: 'the pads of a hash are swapped',
    caller: 'masked',
    osql: 'select id, tax_no from osl.entities.customer',
    made: slotsOf((s) => (s.kind === 'pad' ? { ...s, pad: s.pad === 'inner' ? 'outer' : 'inner' } : s)),
  },
  {
    name: 'a hash of another domain',
    caller: 'masked',
    osql: 'select id, tax_no from osl.entities.customer',
    made: slotsOf((s) => (s.kind === 'pad' ? { ...s, domain: 'other' } : s)),
  },
  {
    name: 'a column is swapped for another',
    caller: 'masked',
    osql: REGION,
    made: columns((c, s) => (c.name === 'name' ? { ...c, expr: base(s.relation, 'email') } : c)),
  },
  {
    name: 'the projection is widened by a column that is not granted',
    caller: 'filtered',
    osql: REGION,
    made: scans((s) => ({
      ...s,
      columns: [
        ...s.columns,
        { name: 'email', type: 'text', masked: 'none', expr: base(s.relation, 'email') },
      ],
    })),
  },
  {
    name: 'a denied column is read',
    caller: 'narrow',
    osql: 'select id from osl.entities.customer',
    made: scans((s) => ({
      ...s,
      columns: [...s.columns, { name: 'vip', type: 'bool', masked: 'none', expr: base(s.relation, 'vip') }],
    })),
  },
  {
    name: 'a column that nobody declared is read',
    caller: 'owner',
    osql: REGION,
    made: scans((s) => ({
      ...s,
      columns: [...s.columns, { name: 'x', type: 'text', masked: 'none', expr: base(s.relation, 'name') }],
    })),
  },
  {
    name: 'another table of the same columns is read',
    caller: 'owner',
    osql: REGION,
    made: scans((s) => ({ ...s, relation: { ...s.relation, table: 'customers_of_others' } })),
  },
  {
    name: 'another relation under the name of one that is granted',
    caller: 'filtered',
    osql: REGION,
    made: scans((s, c) => ({ ...s, relation: { ...relation(c, 'invoice'), name: s.relation.name } })),
  },
  {
    name: 'another entity is read, which is not granted',
    caller: 'filtered',
    osql: REGION,
    made: scans((s, c) => ({ ...s, relation: relation(c, 'product'), filter: null })),
  },
  {
    name: 'the key of a join is the value under its mask',
    caller: 'overlap',
    osql: KEYED,
    made: columns((c, s) => (c.name.endsWith('#key') ? { ...c, expr: base(s.relation, 'label') } : c)),
  },
  {
    name: 'a predicate below the barrier reads what a mask covers',
    caller: 'masked',
    osql: EMAIL,
    made: scans((s) => ({
      ...s,
      pushed: [{ kind: 'null_test', arg: base(s.relation, 'ssn'), negated: true, type: 'bool' }],
    })),
  },
  {
    name: 'a predicate below the barrier reads a column that is not granted',
    caller: 'filtered',
    osql: REGION,
    made: scans((s) => ({
      ...s,
      pushed: [{ kind: 'null_test', arg: base(s.relation, 'score'), negated: true, type: 'bool' }],
    })),
  },
  {
    name: 'a predicate that can fail runs below the barrier',
    caller: 'dear',
    osql: ASKED,
    made: ({ query, slots }) => ({
      slots,
      query: walk.mapQuery(query, {
        item: (i: FromItem) => {
          if (i.kind !== 'governed' || query.kind !== 'select') return i;
          const [first] = query.where.map(withoutGuards);
          const over = (e: Expr): Expr =>
            deeply(e, (x) =>
              x.kind === 'column' ? (i.columns.find((c) => c.name === x.name)?.expr ?? x) : x,
            );
          return first === undefined ? i : { ...i, pushed: [over(first)] };
        },
      }),
    }),
  },
  {
    name: 'a number made of small ones exceeds its type on hidden rows',
    caller: 'filtered',
    osql: 'select id from osl.entities.customer where id > 1999999::int8 * 1999999 * 1999999',
    made: ({ query, slots }) => ({
      slots,
      query: walk.mapQuery(query, {
        expr: (e: Expr) =>
          e.kind === 'operation' && e.definition.name === '*' && e.left?.kind === 'operation'
            ? { ...e, definition: requireOperator('+', 'int8', 'int8'), left: e, right: e }
            : e,
      }),
    }),
  },
  {
    name: 'the fence is taken away',
    caller: 'dear',
    osql: ASKED,
    made: ({ query, slots }) => ({
      slots,
      query: walk.mapQuery(query, {
        item: (i: FromItem) => (i.kind === 'governed' ? { ...i, fenced: false } : i),
        query: (q: Query) =>
          q.kind === 'select'
            ? {
                ...q,
                where: q.where.map(withoutGuards),
              }
            : q,
      }),
    }),
  },
  // Behind a fence the pattern runs late, but the planner tries it on a table's statistics to estimate the condition.
  ...["name ~ '^a'", "not (name ~ '^a')", "(name ~ '^a') is true", "name ~ '^a' or id = 1"].map(
    (condition): Fault => ({
      name: `a pattern is behind a fence alone: ${condition}`,
      caller: 'regional',
      osql: `select id from osl.entities.customer where ${condition}`,
      made: ({ query, slots }) => ({
        slots,
        query: walk.mapQuery(query, {
          item: (i: FromItem) => (i.kind === 'governed' ? { ...i, fenced: true } : i),
          query: (q: Query) => (q.kind === 'select' ? { ...q, where: q.where.map(withoutGuards) } : q),
        }),
      }),
    }),
  ),
  {
    name: 'every row is said to be shown',
    caller: 'dear',
    osql: ASKED,
    made: columns((c) => (c.name === '#shown' ? { ...c, expr: TRUE } : c)),
  },
  {
    name: 'groups may be smaller',
    caller: 'partly',
    osql: GROUPS,
    made: scans((s) => (s.minimum === null ? s : { ...s, minimum: { ...s.minimum, size: 1 } })),
  },
  {
    name: 'groups are counted against a smaller number',
    caller: 'partly',
    osql: GROUPS,
    made: slotsOf((s) => (s.kind === 'literal' && s.value === '3' ? { ...s, value: '1' } : s)),
  },
  {
    name: 'no minimum holds',
    caller: 'counted',
    osql: GROUPS,
    made: scans((s) => ({ ...s, minimum: null })),
  },
  {
    name: 'rows that may only be aggregated are said to be shown',
    caller: 'counted',
    osql: GROUPS,
    made: columns((c) => (c.name === '#group' ? { ...c, expr: { kind: 'null', type: c.type } } : c)),
  },
  {
    name: 'a grant of somebody else applies',
    caller: 'partly',
    osql: GROUPS,
    made: scans((s) =>
      s.minimum === null
        ? s
        : {
            ...s,
            minimum: { ...s.minimum, grants: s.minimum.grants.map((g) => ({ ...g, filter: null, id: 'g' })) },
          },
    ),
  },
  {
    name: 'rows without a key are counted',
    caller: 'counted',
    osql: GROUPS,
    made: scans((s) => ({ ...s, pushed: [] })),
  },
];

function planFor({ caller, osql }: Fault): GovernedPlan {
  return compile(osql, CATALOG, accessOf(caller));
}

function accessOf(caller: string): Access {
  const found = CALLERS.get(caller);
  if (found === undefined) throw new Error(`no caller ${caller}`);
  return found.access;
}

t.test('a plan is refused for each fault of what makes plans', async (t) => {
  for (const fault of FAULTS) {
    const plan = planFor(fault);
    const access = accessOf(fault.caller);
    verify(plan.query, plan.slots, 'declared', CATALOG, access);
    const bad = fault.made(plan, CATALOG);
    t.ok(
      JSON.stringify(bad) !== JSON.stringify({ slots: plan.slots, query: plan.query }),
      `${fault.name}: is there`,
    );
    t.throws(() => verify(bad.query, bad.slots, 'declared', CATALOG, access), InternalError, fault.name);
  }
});

t.test('the plan of one caller is refused for another', async (t) => {
  const pairs: readonly (readonly [string, string])[] = [
    ['owner', 'masked'],
    ['owner', 'regional'],
    ['regional', 'chain'],
    ['masked', 'filtered'],
    ['overlap', 'pieced'],
  ];
  for (const [from, to] of pairs) {
    const { query, slots } = compile(EMAIL, CATALOG, accessOf(from));
    t.throws(() => verify(query, slots, 'declared', CATALOG, accessOf(to)), InternalError, `${from}, ${to}`);
  }
});

/** Faults of what reads the store of a facet, with the step in whose plan they are. */
const OF_STORES: readonly (readonly [string, 'passages' | 'derived' | 'counts', Fault['made']])[] = [
  [
    'the filter of the facet is dropped',
    'passages',
    scans((s) => (s.relation.kind === 'facet' ? { ...s, filter: null } : s)),
  ],
  [
    'the filter of the entity is dropped',
    'passages',
    scans((s) => (s.relation.kind === 'facet' ? s : { ...s, filter: null })),
  ],
  [
    'passages come whatever becomes of their entity',
    'passages',
    ({ query, slots }) => ({
      slots,
      query: walk.mapQuery(query, {
        query: (q: Query) =>
          q.kind === 'select' ? { ...q, where: q.where.filter((e) => e.kind !== 'in_query') } : q,
      }),
    }),
  ],
  [
    'the visible entity of another column',
    'passages',
    ({ query, slots }) => ({
      slots,
      query: walk.mapQuery(query, {
        expr: (e: Expr) =>
          e.kind === 'in_query' && e.arg.kind === 'column' ? { ...e, arg: { ...e.arg, name: '#doc_id' } } : e,
      }),
    }),
  ],
  [
    'another version is read',
    'passages',
    scans((s) => (s.relation.kind === 'facet' ? { ...s, relation: { ...s.relation, table: 'note_v0' } } : s)),
  ],
  [
    'words are counted in passages that are hidden',
    'counts',
    scans((s) =>
      s.relation.kind === 'facet' ? { ...s, filter: null, relation: { ...s.relation, table: 'note_w1' } } : s,
    ),
  ],
  [
    'what is derived from passages of another facet is shown',
    'derived',
    scans((s) =>
      s.relation.table === 'note_d1'
        ? { ...s, relation: { ...s.relation, name: 'memo', table: 'memo_d1' } }
        : s,
    ),
  ],
  [
    'what is derived is shown whatever becomes of its passage',
    'derived',
    ({ query, slots }) => ({
      slots,
      query: walk.mapQuery(query, {
        query: (q: Query) =>
          q.kind === 'select' && q.from?.kind === 'join' ? { ...q, from: { ...q.from, type: 'left' } } : q,
      }),
    }),
  ],
];

/** The world with another facet of the same form, all of whose passages are shown. */
function withMemo({ catalog, access }: ReturnType<typeof worldOf>): ReturnType<typeof worldOf> {
  const note = catalog.facets.get('note');
  const rights = access.relations.get('note');
  if (note === undefined || rights === undefined) throw new Error('there is no facet');
  const versions = note.versions.map((version) => ({
    ...version,
    table: 'memo_v1',
    bits: 'memo_b1',
    words: 'memo_w1',
    derivedTable: 'memo_d1',
  }));
  const memo = { ...relation(catalog, 'note'), name: 'memo', table: 'memo' };
  const grants = rights.grants.map((grant) => ({ ...grant, filter: null }));
  return {
    catalog: {
      ...catalog,
      relations: new Map([...catalog.relations, ['memo', memo]]),
      facets: new Map([...catalog.facets, ['memo', { ...note, name: 'memo', versions }]]),
    },
    access: { ...access, relations: new Map([...access.relations, ['memo', { ...rights, grants }]]) },
  };
}

t.test('a plan over the store of a facet is refused for each fault', async (t) => {
  await compiler.ready();
  const { catalog, access } = withMemo(worldOf(compiler, 'clerk'));
  const retrieved = compile(
    "select r.text from retrieve(facet => 'note', query => 'note', top_k => 3) r",
    catalog,
    access,
  );
  const hydrated = compile(
    'select e.id, e.mood from osl.entities.employee e where e.id in (1, 8)',
    catalog,
    access,
  );
  const runtime = [...retrieved.runtime, ...hydrated.runtime];
  const stores: readonly (GovernedStore | null)[] = runtime.flatMap((r): readonly (GovernedStore | null)[] =>
    r.kind === 'retrieval' ? [r.store] : r.kind === 'hydration' ? r.stores : [],
  );
  const steps = {
    passages: stores[0]?.passages,
    counts: stores[0]?.counts?.whole,
    derived: stores.find((s) => s?.derived != null)?.derived,
  };
  for (const [name, step, made] of OF_STORES) {
    const plan = steps[step];
    if (plan == null) {
      t.fail(`${name}: no plan of ${step}`);
      continue;
    }
    verify(plan.query, plan.slots, null, catalog, access);
    const bad = made(plan, catalog);
    t.ok(
      JSON.stringify(bad) !== JSON.stringify({ slots: plan.slots, query: plan.query }),
      `${name}: is there`,
    );
    t.throws(() => verify(bad.query, bad.slots, null, catalog, access), InternalError, name);
  }
});
