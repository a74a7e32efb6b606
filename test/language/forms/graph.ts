import fc from 'fast-check';

/** Nodes linked with each other and with items, and groups of items. A row is hidden from some callers. */
export const GRAPH_MANIFEST = `
version: 1
tenant: graph
connectors:
  db:
    kind: pglite
    tables:
      g.node: { columns: { id: { type: int4 }, shown: { type: bool, nullable: false } } }
      g.item: { columns: { id: { type: int4 }, grp: { type: int4 }, shown: { type: bool, nullable: false } } }
      g.grp: { columns: { id: { type: int4 }, shown: { type: bool, nullable: false } } }
      g.link: { columns: { a: { type: int4 }, b: { type: int4 }, shown: { type: bool, nullable: false } } }
      g.owns: { columns: { node: { type: int4 }, item: { type: int4 }, shown: { type: bool, nullable: false } } }
      g.likes: { columns: { node: { type: int4 }, item: { type: int4 }, shown: { type: bool, nullable: false } } }
entities:
  node: { source: db.g.node, primary_key: [id], columns: [id, shown] }
  item: { source: db.g.item, primary_key: [id], entity_key_columns: [id, grp], columns: [id, grp, shown] }
  grp: { source: db.g.grp, primary_key: [id], columns: [id, shown] }
bridges:
  link:
    source: db.g.link
    left: { entity: node, columns: [a] }
    right: { entity: node, columns: [b] }
    columns: [a, b, shown]
  owns:
    source: db.g.owns
    left: { entity: node, columns: [node] }
    right: { entity: item, columns: [item] }
    columns: [node, item, shown]
  likes:
    source: db.g.likes
    left: { entity: node, columns: [node] }
    right: { entity: item, columns: [item] }
    columns: [node, item, shown]
relationships:
  item_grp: { from: item.grp, to: grp.id, kind: many_to_one }
`;

/** `user:all` sees every row; `user:some` those that are shown; `user:one` of the bridges to items only `owns`. */
export const GRAPH_POLICY = `
version: 1
tenant: graph
subjects:
  user:all: { ceiling: [all] }
  user:some: { ceiling: [some] }
  user:one: { ceiling: [one] }
roles:
  all:
    grants:
      - { on: node, columns: "*" }
      - { on: item, columns: "*" }
      - { on: grp, columns: "*" }
      - { on: link, columns: "*" }
      - { on: owns, columns: "*" }
      - { on: likes, columns: "*" }
  some:
    grants:
      - { on: node, columns: "*", rows: shown }
      - { on: item, columns: "*", rows: shown }
      - { on: grp, columns: "*", rows: shown }
      - { on: link, columns: "*", rows: shown }
      - { on: owns, columns: "*", rows: shown }
      - { on: likes, columns: "*", rows: shown }
  one:
    grants:
      - { on: node, columns: "*" }
      - { on: item, columns: "*" }
      - { on: owns, columns: "*" }
masks: {}
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`;

export const GRAPH_TABLES = `
CREATE SCHEMA g;
CREATE TABLE g.node (id int4 PRIMARY KEY, shown bool NOT NULL);
CREATE TABLE g.item (id int4 PRIMARY KEY, grp int4, shown bool NOT NULL);
CREATE TABLE g.grp (id int4 PRIMARY KEY, shown bool NOT NULL);
CREATE TABLE g.link (a int4, b int4, shown bool NOT NULL, PRIMARY KEY (a, b));
CREATE TABLE g.owns (node int4, item int4, shown bool NOT NULL, PRIMARY KEY (node, item));
CREATE TABLE g.likes (node int4, item int4, shown bool NOT NULL, PRIMARY KEY (node, item));
`;

type Entity = readonly [id: number, shown: boolean];
/** From, to, and whether it is shown. */
export type Pair = readonly [from: number, to: number, shown: boolean];

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

/** Breadth first in plain JavaScript; `repeats` leaves out what was met before, the anchors included. */
export function walk(hops: readonly Hop[], anchors: readonly number[], cap: number, repeats: boolean): Walk {
  const found = new Map<number, number>();
  const seen = new Set(anchors);
  let frontier = new Set(anchors);
  let clipped = false;
  for (const [i, { pairs, from, to }] of hops.entries()) {
    const reachable = [...new Set(pairs.map(([a, b]) => `${a} ${b}`))]
      .map((p) => p.split(' ').map(Number))
      .filter(([a = 0, b = 0]) => frontier.has(a) && from.includes(a) && to.includes(b))
      .sort(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d);
    if (reachable.length > cap) clipped = true;
    const targets = reachable.slice(0, cap).map(([, b = 0]) => b);
    const fresh = new Set(repeats ? targets.filter((k) => !seen.has(k)) : targets);
    for (const key of fresh) {
      seen.add(key);
      if (repeats || i === hops.length - 1) found.set(key, i + 1);
    }
    frontier = fresh;
    // Behind what was left out a depth could be more than the least.
    if (clipped && repeats) break;
  }
  const rows = [...found].map(([key, depth]) => ({ id: key, depth }));
  return { rows: rows.sort((a, b) => a.depth - b.depth || a.id - b.id), clipped };
}
