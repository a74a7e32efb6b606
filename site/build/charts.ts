/** Charts of what was measured. Each bar is a figure of `bench/RESULTS.md`, and stands in the table beside it, too. */
import type { Figure, Results } from './figures.js';
import { box, picture, type Tone, words } from './svg.js';

/** Bars in groups, one for each series; null where there is none. */
export interface Chart {
  /** Of its file, `docs/pictures/bench-NAME.svg`, and of its place in the page. */
  readonly name: string;
  readonly title: string;
  /** Sections of `bench/RESULTS.md` that its figures are of: their days and machines are told. */
  readonly sections: readonly string[];
  readonly unit: string;
  /** True if more is better. */
  readonly better: 'more' | 'less';
  readonly scale: 'linear' | 'log';
  readonly series: readonly { readonly name: string; readonly tone: Tone }[];
  readonly groups: readonly { readonly label: string; readonly values: readonly (number | null)[] }[];
}

const BARRIER = 'barrier: with policy, without, and row security';
/** Lines of the barrier's table, and how a reader would say them. */
const QUESTIONS: readonly (readonly [question: string, label: string])[] = [
  ['point', 'a row by its key'],
  ['numeric_key', 'a row by a numeric key'],
  ['date_range', 'a range of dates'],
  ['numeric_range', 'a range of numbers'],
  ['like', "LIKE 'owner 12%'"],
  ['array_search', 'a word in arrays, by GIN'],
  ['numeric_join', 'a join on numeric keys'],
  ['partitions', 'one day of a partitioned table'],
  ['index_only', 'a count that an index alone answers'],
];

/** Every chart of the page of benchmarks, in its order. */
export function chartsOf(results: Results): readonly Chart[] {
  return [
    governance(results),
    barrier(results),
    rlsSpeed(results),
    wire(results),
    clients(results),
    sync(results),
    rest(results),
    compile(results),
    recall(results),
  ];
}

const EACH = 'tpch: each question';
/** Queries of TPC-H and of ours, and how a reader would say them; those that lose are among them. */
const KINDS: readonly (readonly [question: string, label: string])[] = [
  ['q01', 'sums over one table (Q1)'],
  ['q03', 'a join of three tables (Q3)'],
  ['q05', 'a join of six tables (Q5)'],
  ['q13', 'an outer join, counted twice (Q13)'],
  ['q18', 'a join with an aggregate in IN (Q18)'],
  ['q21', 'EXISTS and NOT EXISTS (Q21)'],
  ['q22', 'parts of a text, NOT EXISTS (Q22)'],
  ['price', 'a range of prices, by an index'],
  ['clerk', 'LIKE with a prefix'],
  ['name', 'a join of a name found by lower()'],
];

/** A cell of the table holds `ours (by hand over ours; row security over ours)`. */
function governance(results: Results): Chart {
  const lines = results.rows(EACH);
  const groups = KINDS.map(([question, label]) => {
    const cell = lines.find(([name]) => name === question)?.[2] ?? '';
    const [, ours, hand, security] = /^([\d.]+) \(([\d.]+)×; ([\d.]+)×\)$/.exec(cell) ?? [];
    if (ours === undefined)
      throw new Error(`bench/RESULTS.md has no times of ${question} under the tenant filter`);
    const ms = (ratio: string | undefined): number => Number((Number(ours) * Number(ratio)).toPrecision(3));
    return { label, values: [ms(hand), Number(ours), ms(security)] };
  });
  return {
    name: 'governance',
    title: 'TPC-H at scale 0.1 for one tenant of ten',
    sections: [EACH],
    unit: 'ms',
    better: 'less',
    scale: 'log',
    series: [
      { name: 'the filter written by hand', tone: 'plain' },
      { name: 'through the gateway', tone: 'ours' },
      { name: 'row security of Postgres', tone: 'other' },
    ],
    groups,
  };
}

function barrier(results: Results): Chart {
  const lines = results.rows(BARRIER);
  const groups = QUESTIONS.map(([question, label]) => {
    const row = lines.find(([name]) => name === question);
    if (row === undefined) throw new Error(`bench/RESULTS.md has no question ${question}`);
    const [, , , ours, without, , security] = row.map(Number);
    return { label, values: [without, ours, security].map((v) => v ?? null) };
  });
  return {
    name: 'barrier',
    title: 'What a row filter costs, beside no policy and beside row security of Postgres',
    sections: [BARRIER],
    unit: 'µs',
    better: 'less',
    scale: 'log',
    series: [
      { name: 'without policy', tone: 'plain' },
      { name: 'through the gateway’s SQL', tone: 'ours' },
      { name: 'row security of Postgres', tone: 'other' },
    ],
    groups,
  };
}

/** Statements of the bench `rls-speed`, and how a reader would say them; those that lose are among them. */
const POLICIES: readonly (readonly [statement: string, label: string])[] = [
  ['admin_page', 'owner_id = auth.uid() OR is_admin(): a page'],
  ['admin_count', 'the same: a count'],
  ['member_function', 'is_member(team_id): a count by team'],
  ['member_exists', 'EXISTS over memberships: a count'],
  ['like_prefix', "a tenant, and LIKE 'abc%' over an index"],
  ['tenant_groups', 'a tenant: its rows, grouped'],
  ['key', 'a tenant: a row by its key'],
];

function rlsSpeed(results: Results): Chart {
  return {
    name: 'rls-speed',
    title: 'Policies as applications write them, under row security and imported',
    sections: ['rls-speed'],
    unit: 'ms',
    better: 'less',
    scale: 'log',
    series: [
      { name: 'row security of Postgres', tone: 'other' },
      { name: 'the gateway’s SQL, with reading the caller’s attributes', tone: 'ours' },
    ],
    groups: POLICIES.map(([statement, label]) => {
      const { median, against } = results.figure(`rls_speed.${statement}`);
      return { label, values: [against, median] };
    }),
  };
}

const PEERS: Chart['series'] = [
  { name: 'Postgres, directly', tone: 'plain' },
  { name: 'PgBouncer', tone: 'other' },
  { name: 'the gateway', tone: 'ours' },
];

/** Direct, by PgBouncer, through the gateway: of the wire's figures under `id`. */
function beside(results: Results, id: string): readonly (number | null)[] {
  const direct = results.figure(`${id}.vs_direct`);
  const bouncer = found(results, `${id}.vs_pgbouncer`);
  return [direct.against, bouncer?.against ?? null, direct.median];
}

function found(results: Results, id: string): Figure | null {
  return results.rows().some(([name]) => name === id) ? results.figure(id) : null;
}

function wire(results: Results): Chart {
  return {
    name: 'wire',
    title: 'A row by its key, 64 clients: questions a second',
    sections: ['wire'],
    unit: 'q/s',
    better: 'more',
    scale: 'linear',
    series: PEERS,
    groups: [
      { label: 'simple protocol', values: beside(results, 'wire.point.c64') },
      { label: 'extended protocol', values: beside(results, 'wire.point.extended.c64') },
      { label: 'prepared statements', values: beside(results, 'wire.point.prepared.c64') },
    ],
  };
}

function clients(results: Results): Chart {
  return {
    name: 'clients',
    title: 'The same by the simple protocol, fewer clients: questions a second',
    sections: ['wire'],
    unit: 'q/s',
    better: 'more',
    scale: 'linear',
    series: PEERS,
    groups: [
      { label: '1 client', values: beside(results, 'wire.point.c1') },
      { label: '16 clients', values: beside(results, 'wire.point.c16') },
      { label: '64 clients', values: beside(results, 'wire.point.c64') },
    ],
  };
}

function sync(results: Results): Chart {
  const line = (label: string, id: string): Chart['groups'][number] => {
    const [direct, disk] = [results.figure(`${id}.vs_direct`), results.figure(`${id}.vs_disk`)];
    const bouncer = found(results, `${id}.vs_pgbouncer`);
    return { label, values: [direct.against, bouncer?.against ?? null, disk.against, disk.median] };
  };
  return {
    name: 'sync',
    title: 'When an answer waits for the log: questions a second',
    sections: ['sync'],
    unit: 'q/s',
    better: 'more',
    scale: 'linear',
    series: [
      { name: 'Postgres, directly', tone: 'plain' },
      { name: 'PgBouncer', tone: 'other' },
      { name: 'the gateway, until the record is synced', tone: 'ours' },
      { name: 'the gateway, until it is written', tone: 'ours' },
    ],
    groups: [
      line('1 client', 'sync.kernel.c1'),
      line('16 clients', 'sync.kernel.c16'),
      line('64 clients', 'sync.kernel.c64'),
    ],
  };
}

function rest(results: Results): Chart {
  const line = (label: string, id: string): Chart['groups'][number] => {
    const { median, against } = results.figure(id);
    return { label, values: [against, median] };
  };
  return {
    name: 'rest',
    title: 'A row by its key over REST: requests a second',
    sections: ['rest'],
    unit: 'requests/s',
    better: 'more',
    scale: 'linear',
    series: [
      { name: 'Fastify and pg by hand, without policy', tone: 'plain' },
      { name: 'the gateway', tone: 'ours' },
    ],
    groups: [
      line('1 client', 'rest.point.c1.vs_handwritten'),
      line('16 clients', 'rest.point.c16.vs_handwritten'),
      line('64 clients', 'rest.point.vs_handwritten'),
    ],
  };
}

function compile(results: Results): Chart {
  const beside = (label: string, peer: string): Chart['groups'][number] => {
    const known = results.figure(`compile.vs_${peer}`);
    return {
      label,
      values: [known.median, results.figure(`compile.cold_vs_${peer}`).median, known.against],
    };
  };
  return {
    name: 'compile',
    title: 'From a question to SQL, each pair in turns',
    sections: ['compile'],
    unit: 'µs',
    better: 'less',
    scale: 'log',
    series: [
      { name: 'OSL Gateway, a text whose shape is known', tone: 'ours' },
      { name: 'OSL Gateway, the compiler alone', tone: 'plain' },
      { name: 'the other', tone: 'other' },
    ],
    groups: [
      beside('beside drizzle-cube’s planner', 'drizzle_cube'),
      beside('beside Cube’s compiler, legacy planner', 'cube'),
      beside('beside Malloy’s compiler', 'malloy'),
    ],
  };
}

function recall(results: Results): Chart {
  const line = (percent: string, more = ''): Chart['groups'][number] => {
    const { median, against } = results.figure(`retrieve.recall.${percent}${more === '' ? '' : `.${more}`}`);
    const how = more === '' ? '' : ', and what is looked for is mostly hidden';
    return { label: `the caller may see ${percent} %${how}`, values: [against, median] };
  };
  return {
    name: 'recall',
    title: 'Of the ten nearest passages that the caller may see, how many are found',
    sections: ['retrieve'],
    unit: 'share',
    better: 'more',
    scale: 'linear',
    series: [
      { name: 'pgvector’s HNSW, with the filter beside it', tone: 'plain' },
      { name: 'RETRIEVE', tone: 'ours' },
    ],
    groups: [
      line('100'),
      line('10'),
      line('1'),
      line('0.1'),
      line('10', 'anticorrelated'),
      line('0.1', 'anticorrelated'),
    ],
  };
}

const WIDTH = 520;
const EDGE = 16;
const BAR = 15;
const GAP = 3;

/** `1,234` or `0.975`: what a bar says at its end. */
export function spoken(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return value >= 10 ? value.toFixed(1).replace(/\.0$/, '') : String(Number(value.toPrecision(3)));
}

/** All that a chart shows, as a sentence for each group. */
export function inWords({ title, unit, series, groups }: Chart): string {
  const told = groups.map(({ label, values }) => {
    const each = values.flatMap((v, i) => (v === null ? [] : [`${series[i]?.name} ${spoken(v)} ${unit}`]));
    return `${label}: ${each.join(', ')}`;
  });
  return `${title}. ${told.join('. ')}.`;
}

/** The chart as an SVG. `made`: when and where it was measured. */
export function drawn(chart: Chart, made: string): string {
  const room = WIDTH - 2 * EDGE - 96;
  const length = lengthOf(chart, room);
  const parts: string[] = [];
  let y = EDGE + 12;
  for (const line of wrapped(chart.title, 52)) {
    parts.push(words({ x: EDGE, y, text: line, size: 15, weight: 'bold' }));
    y += 20;
  }
  const log = chart.scale === 'log' ? '; the scale is logarithmic' : '';
  parts.push(
    words({ x: EDGE, y, text: `${chart.unit}, ${chart.better} is better${log}`, size: 12, tone: 'faint' }),
  );
  y += 12;
  for (const { name, tone } of chart.series) {
    parts.push(box({ x: EDGE, y: y + 2, width: 11, height: 11, fill: tone, radius: 2 }));
    parts.push(words({ x: EDGE + 18, y: y + 12, text: name, size: 12 }));
    y += 18;
  }
  y += 6;
  for (const { label, values } of chart.groups) {
    parts.push(words({ x: EDGE, y: y + 12, text: label, size: 13 }));
    y += 18;
    for (const [i, value] of values.entries()) {
      if (value === null) continue;
      const width = Math.max(2, Math.round(length(value)));
      parts.push(box({ x: EDGE, y, width, height: BAR, fill: chart.series[i]?.tone ?? 'plain', radius: 2 }));
      parts.push(words({ x: EDGE + width + 6, y: y + 12, text: spoken(value), size: 12 }));
      y += BAR + GAP;
    }
    y += 8;
  }
  for (const line of wrapped(made.replaceAll('`', ''), 76)) {
    parts.push(words({ x: EDGE, y: y + 10, text: line, size: 11, tone: 'faint' }));
    y += 15;
  }
  return picture(WIDTH, y + EDGE, chart.title, inWords(chart), parts);
}

/** Returns the length of a bar, of `room`. A logarithmic scale begins at the power of ten below the least. */
function lengthOf({ scale, groups }: Chart, room: number): (value: number) => number {
  const all = groups.flatMap(({ values }) => values.filter((v) => v !== null));
  const most = Math.max(...all);
  if (scale === 'linear') return (value) => (room * value) / most;
  const from = Math.floor(Math.log10(Math.min(...all)));
  return (value) => (room * (Math.log10(value) - from)) / (Math.log10(most) - from);
}

function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
