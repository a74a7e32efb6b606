import { fc } from '../../support/fast-check.js';
import { bridgeText, grantsText, manifestText, policyText } from '../../support/model-text.js';

/** Nodes linked with each other and with items, and groups of items. A row is hidden from some callers. */
const GRAPH_MANIFEST = manifestText(
  'graph',
  {
    'g.node': 'id int4, shown bool not null',
    'g.item': 'id int4, grp int4, shown bool not null',
    'g.grp': 'id int4, shown bool not null',
    'g.link': 'a int4, b int4, shown bool not null',
    'g.owns': 'node int4, item int4, shown bool not null',
    'g.likes': 'node int4, item int4, shown bool not null',
    'g.knode': 'area int4, name text tag, shown bool not null',
    'g.kitem': 'area int4, name text, grp int4, shown bool not null',
    'g.klink': 'a1 int4, a2 text, b1 int4, b2 text, shown bool not null',
    'g.kowns': 'a1 int4, a2 text, b1 int4, b2 text, shown bool not null',
    'g.klikes': 'a1 int4, a2 text, b1 int4, b2 text, shown bool not null',
  },
  `entities:
  node: { source: db.g.node, primary_key: [id], columns: [id, shown] }
  item: { source: db.g.item, primary_key: [id], entity_key_columns: [id, grp], columns: [id, grp, shown] }
  grp: { source: db.g.grp, primary_key: [id], columns: [id, shown] }
  knode: { source: db.g.knode, primary_key: [area, name], columns: [area, name, shown] }
  kitem: { source: db.g.kitem, primary_key: [area, name], entity_key_columns: [area, name, grp], columns: [area, name, grp, shown] }
bridges:
${bridgeText('link', 'g.link', ['node', 'a'], ['node', 'b'], 'shown')}
${bridgeText('owns', 'g.owns', ['node', 'node'], ['item', 'item'], 'shown')}
${bridgeText('likes', 'g.likes', ['node', 'node'], ['item', 'item'], 'shown')}
${bridgeText('klink', 'g.klink', ['knode', 'a1', 'a2'], ['knode', 'b1', 'b2'], 'shown')}
${bridgeText('kowns', 'g.kowns', ['knode', 'a1', 'a2'], ['kitem', 'b1', 'b2'], 'shown')}
${bridgeText('klikes', 'g.klikes', ['knode', 'a1', 'a2'], ['kitem', 'b1', 'b2'], 'shown')}
relationships:
  item_grp: { from: item.grp, to: grp.id, kind: many_to_one }
  kitem_grp: { from: kitem.grp, to: grp.id, kind: many_to_one }
`,
);

/** `user:all` sees every row; `user:some` those that are shown; `user:one` of the bridges to items only `owns`. */
const GRAPH_POLICY = policyText(
  'graph',
  {
    'user:all': 'all',
    'user:some': 'some',
    'user:one': 'one',
    'user:masked': 'masked',
    'user:partly': 'masked, partly',
  },
  `roles:
  all:
    grants:
${grantsText(['node', 'item', 'grp', 'link', 'owns', 'likes'])}
      - { on: knode, columns: "*", unmask: [tag] }
${grantsText(['kitem', 'klink', 'kowns', 'klikes'])}
  some:
    grants:
${grantsText(['node', 'item', 'grp', 'link', 'owns', 'likes'], 'rows: shown')}
      - { on: knode, columns: "*", rows: shown, unmask: [tag] }
${grantsText(['kitem', 'klink', 'kowns', 'klikes'], 'rows: shown')}
  one:
    grants:
${grantsText(['node', 'item', 'owns'])}
  masked:
    grants:
${grantsText(['knode', 'kitem', 'klink', 'kowns'])}
  partly:
    grants:
      - { on: knode, columns: "*", rows: shown, unmask: [tag] }
masks: { tag: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

const GRAPH_TABLES = `
CREATE SCHEMA g;
CREATE TABLE g.node (id int4 PRIMARY KEY, shown bool NOT NULL);
CREATE TABLE g.item (id int4 PRIMARY KEY, grp int4, shown bool NOT NULL);
CREATE TABLE g.grp (id int4 PRIMARY KEY, shown bool NOT NULL);
CREATE TABLE g.link (a int4, b int4, shown bool NOT NULL, PRIMARY KEY (a, b));
CREATE TABLE g.owns (node int4, item int4, shown bool NOT NULL, PRIMARY KEY (node, item));
CREATE TABLE g.likes (node int4, item int4, shown bool NOT NULL, PRIMARY KEY (node, item));
CREATE TABLE g.knode (area int4, name text, shown bool NOT NULL, PRIMARY KEY (area, name));
CREATE TABLE g.kitem (area int4, name text, grp int4, shown bool NOT NULL, PRIMARY KEY (area, name));
CREATE TABLE g.klink (a1 int4, a2 text, b1 int4, b2 text, shown bool NOT NULL, PRIMARY KEY (a1, a2, b1, b2));
CREATE TABLE g.kowns (a1 int4, a2 text, b1 int4, b2 text, shown bool NOT NULL, PRIMARY KEY (a1, a2, b1, b2));
CREATE TABLE g.klikes (a1 int4, a2 text, b1 int4, b2 text, shown bool NOT NULL, PRIMARY KEY (a1, a2, b1, b2));
`;

/** Options of a service over the empty graph. */
export const GRAPH_WORLD = {
  manifest: GRAPH_MANIFEST,
  policy: GRAPH_POLICY,
  script: GRAPH_TABLES,
  schema: 'g',
} as const;

type Entity = readonly [id: number, shown: boolean];
/** From, to, and whether it is shown. */
type Pair = readonly [from: number, to: number, shown: boolean];

export interface Graph {
  readonly nodes: readonly Entity[];
  /** With the group of each. */
  readonly items: readonly (readonly [id: number, grp: number | null, shown: boolean])[];
  readonly groups: readonly Entity[];
  readonly links: readonly Pair[];
  readonly owns: readonly Pair[];
  readonly likes: readonly Pair[];
}

const SIZE = 12;
const id = fc.integer({ min: 1, max: SIZE });
/** Three in four. */
const shown = fc.integer({ min: 0, max: 3 }).map((n) => n > 0);
const entities = fc.uniqueArray(fc.tuple(id, shown), {
  minLength: 4,
  maxLength: SIZE,
  selector: (e) => e[0],
});
/** Some point at nothing. */
const pairs = fc.uniqueArray(fc.tuple(id, id, shown), {
  minLength: 12,
  maxLength: 40,
  selector: ([a, b]) => `${a} ${b}`,
});

export const graphs: fc.Arbitrary<Graph> = fc.record({
  nodes: entities,
  items: fc.uniqueArray(fc.tuple(id, fc.option(id, { nil: null }), shown), {
    maxLength: SIZE,
    selector: (e) => e[0],
  }),
  groups: entities,
  links: pairs,
  owns: pairs,
  likes: pairs,
});

/** SQL that puts `graph` in place of the one before. */
export function graphScript({ nodes, items, groups, links, owns, likes }: Graph): string {
  const insert = (table: string, rows: readonly (readonly (number | boolean | null)[])[]): string =>
    rows.length === 0
      ? ''
      : `INSERT INTO g.${table} VALUES ${rows.map((r) => `(${r.map(String).join(', ')})`).join(', ')};`;
  return `TRUNCATE g.node, g.item, g.grp, g.link, g.owns, g.likes;
    ${insert('node', nodes)} ${insert('item', items)} ${insert('grp', groups)}
    ${insert('link', links)} ${insert('owns', owns)} ${insert('likes', likes)}`;
}

/** Letters, in order, beside which stands what arrays, JSON and SQL have a meaning of their own for. */
const NAMES: readonly string[] = ['a', 'b",', "c}'"];

/** Number `n` as a key of two columns, neither of which is unique; in the order of the numbers. */
function keyFor(n: number): readonly [area: number, name: string] {
  return [Math.floor(n / NAMES.length), NAMES[n % NAMES.length] ?? ''];
}

/** The number whose key it is. */
export function numberOf(area: unknown, name: unknown): number {
  return Number(area) * NAMES.length + NAMES.indexOf(String(name));
}

/** Such a key in SQL. */
export function keySql(n: number): string {
  const [area, name] = keyFor(n);
  return `${area}, '${name.replaceAll("'", "''")}'`;
}

/** SQL that puts `graph` in place of the one before, where nodes and items have keys of two columns. */
export function keyedScript({ nodes, items, groups, links, owns, likes }: Graph): string {
  const insert = (table: string, rows: readonly string[]): string =>
    rows.length === 0 ? '' : `INSERT INTO ${table} VALUES ${rows.map((r) => `(${r})`).join(', ')};`;
  const pairRows = (all: readonly Pair[]): readonly string[] =>
    all.map(([a, b, isShown]) => `${keySql(a)}, ${keySql(b)}, ${isShown}`);
  return `TRUNCATE g.knode, g.kitem, g.grp, g.klink, g.kowns, g.klikes;
    ${insert(
      'g.knode',
      nodes.map(([n, isShown]) => `${keySql(n)}, ${isShown}`),
    )}
    ${insert(
      'g.kitem',
      items.map(([n, grp, isShown]) => `${keySql(n)}, ${grp}, ${isShown}`),
    )}
    ${insert(
      'g.grp',
      groups.map(([n, isShown]) => `${n}, ${isShown}`),
    )}
    ${insert('g.klink', pairRows(links))} ${insert('g.kowns', pairRows(owns))} ${insert('g.klikes', pairRows(likes))}`;
}

/** The graph as its caller sees it. */
export function visible(graph: Graph, everything: boolean): Graph {
  if (everything) return graph;
  const kept = <T extends readonly unknown[]>(rows: readonly T[]): readonly T[] =>
    rows.filter((r) => r.at(-1) === true);
  return {
    nodes: kept(graph.nodes),
    items: kept(graph.items),
    groups: kept(graph.groups),
    links: kept(graph.links),
    owns: kept(graph.owns),
    likes: kept(graph.likes),
  };
}

export interface Walk {
  readonly rows: readonly { readonly id: number; readonly depth: number }[];
  readonly clipped: boolean;
}

/** One hop: the pairs, both of whose ends exist. */
export interface Hop {
  readonly pairs: readonly (readonly [number, number])[];
  readonly from: readonly number[];
  readonly to: readonly number[];
}

/**
 * Breadth first in plain JavaScript. `round`: after so many hops the walk is back at the entity that it began with, and
 * leaves out what was met before, the anchors included; 0: it never is.
 */
export function walk(hops: readonly Hop[], anchors: readonly number[], cap: number, round: number): Walk {
  const found = new Map<number, number>();
  const seen = Array.from({ length: round }, (_, i) => new Set(i === round - 1 ? anchors : []));
  let frontier = new Set(anchors);
  let clipped = false;
  for (const [i, { pairs, from, to }] of hops.entries()) {
    const reachable = [...new Set(pairs.map(([a, b]) => `${a} ${b}`))]
      .map((p) => p.split(' ').map(Number))
      .filter(([a = 0, b = 0]) => frontier.has(a) && from.includes(a) && to.includes(b))
      .sort(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d);
    // A key counts once, where its first source by key leads to it.
    const reached = [...new Set(reachable.map(([, b = 0]) => b))];
    if (reached.length > cap) clipped = true;
    const known = seen[i % round];
    const fresh = new Set(reached.slice(0, cap).filter((key) => known?.has(key) !== true));
    const isEnd = round === 0 ? i === hops.length - 1 : (i + 1) % round === 0;
    for (const key of fresh) {
      known?.add(key);
      if (isEnd) found.set(key, i + 1);
    }
    frontier = fresh;
    // Behind what was left out a depth could be more than the least.
    if (clipped && round > 0 && isEnd) break;
  }
  const rows = [...found].map(([key, depth]) => ({ id: key, depth }));
  return { rows: rows.sort((a, b) => a.depth - b.depth || a.id - b.id), clipped };
}
