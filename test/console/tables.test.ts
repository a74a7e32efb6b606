import { LineSplitter } from 'osl-console/api/ask';
import { identityOf } from 'osl-console/api/caller';
import { init } from 'osl-console/parts/chart/echarts';
import { optionOf } from 'osl-console/parts/chart/option';
import { scrollTo, TALLEST, windowOf } from 'osl-console/parts/grid/grid-data';
import { caretOf } from 'osl-console/parts/load/format';
import { type JsonValue, momentOf, RowStore } from 'osl-console/parts/rows/row-store';
import { sortRows } from 'osl-console/parts/rows/sort-rows';
import { maskOf, whyObjects } from 'osl-console/screens/ask/answer-grid';
import { chartFor, timeAt } from 'osl-console/screens/ask/chart-for';
import { copyAs, shellQuoted, WAYS } from 'osl-console/screens/ask/copy-as';
import { completionsAt, scopeOf } from 'osl-console/screens/ask/editor/completions-at';
import { applied, fixOf } from 'osl-console/screens/ask/fix';
import { readLibrary, withAsked, withSaved, writeLibrary } from 'osl-console/screens/ask/library';
import { passageOf, stretchesOf } from 'osl-console/screens/ask/passages';
import { planTree } from 'osl-console/screens/ask/plan-tree';
import { insertionAt, schemaLines } from 'osl-console/screens/ask/schema/schema-lines';
import { hashOf, placeOf } from 'osl-console/shell/routes';
import { test } from 'tap';

test('a day stands at its own mark on the axis, whatever the time zone of the browser', async (t) => {
  const { TZ } = process.env;
  t.teardown(() => {
    process.env['TZ'] = TZ ?? 'UTC';
  });
  process.env['TZ'] = 'America/Los_Angeles';
  const spec = chartFor({
    columns: [
      { name: 'day', type: 'date' },
      { name: 'n', type: 'int4' },
    ],
    rows: 3,
    at: (row, column) => (column === 0 ? `2026-01-0${row + 1}` : row),
  });
  if (spec === null) throw new Error('no chart');
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 900, height: 300 });
  t.teardown(() => chart.dispose());
  chart.setOption(
    optionOf(spec, { text: '#000', quiet: '#000', line: '#000', panel: '#fff', series: ['#000'] }),
  );
  const labels = [...chart.renderToSVGString().matchAll(/>([^<>]+)<\/text>/g)].map(([, label]) => label);
  t.match(labels.slice(-3), ['2026', '2', '3']);
});

test('the chart that the shape of an answer asks for', async (t) => {
  const cases: readonly (readonly [
    string,
    readonly (readonly [string, string])[],
    readonly unknown[][],
    unknown,
  ])[] = [
    [
      'time and a figure',
      [
        ['day', 'date'],
        ['n', 'int8'],
      ],
      [
        ['2026-01-02', '5'],
        ['2026-01-01', '3'],
      ],
      { kind: 'line', x: { name: 'day', scale: 'time' } },
    ],
    [
      'time, a category and a figure',
      [
        ['day', 'date'],
        ['region', 'text'],
        ['n', 'int4'],
      ],
      [
        ['2026-01-01', 'eu', 1],
        ['2026-01-01', 'us', 2],
      ],
      { kind: 'line', series: [{ name: 'eu' }, { name: 'us' }] },
    ],
    [
      'a category and a figure',
      [
        ['license', 'text'],
        ['n', 'int8'],
      ],
      [
        ['MIT', '5'],
        ['ISC', '3'],
      ],
      {
        kind: 'bar',
        series: [
          {
            points: [
              ['MIT', 5],
              ['ISC', 3],
            ],
          },
        ],
      },
    ],
    [
      'a category and two figures alike',
      [
        ['license', 'text'],
        ['n', 'int8'],
        ['m', 'numeric'],
      ],
      [
        ['MIT', '5', '7.5'],
        ['ISC', '3', '2'],
      ],
      { kind: 'bar', series: [{ name: 'n' }, { name: 'm' }], note: null },
    ],
    [
      'a figure that dwarfs the other',
      [
        ['license', 'text'],
        ['n', 'int8'],
        ['bytes', 'numeric'],
      ],
      [
        ['MIT', '5', '70000000'],
        ['ISC', '3', '2'],
      ],
      { kind: 'bar', series: [{ name: 'n' }], note: 'Shown: n alone.' },
    ],
    [
      'two figures',
      [
        ['a', 'float8'],
        ['b', 'int4'],
      ],
      [
        [1, 2],
        [2, 4],
      ],
      { kind: 'scatter', x: { name: 'a' }, y: { name: 'b' } },
    ],
    ['one figure', [['n', 'int8']], [['1']], null],
    [
      'one row of a category',
      [
        ['license', 'text'],
        ['n', 'int8'],
      ],
      [['MIT', '5']],
      null,
    ],
    [
      'texts',
      [
        ['a', 'text'],
        ['b', 'text'],
      ],
      [
        ['x', 'y'],
        ['z', 'w'],
      ],
      null,
    ],
    [
      'two categories',
      [
        ['a', 'text'],
        ['b', 'text'],
        ['n', 'int4'],
      ],
      [
        ['x', 'y', 1],
        ['z', 'w', 2],
      ],
      null,
    ],
    [
      'no rows',
      [
        ['license', 'text'],
        ['n', 'int8'],
      ],
      [],
      null,
    ],
  ];
  for (const [what, columns, rows, wanted] of cases) {
    const input = {
      columns: columns.map(([name, type]) => ({ name, type })),
      rows: rows.length,
      at: (row: number, column: number) => rows[row]?.[column] ?? null,
    };
    const chart = chartFor(input);
    if (wanted === null) t.equal(chart, null, what);
    else t.match(chart, wanted as object, what);
  }
  const many = {
    columns: [
      { name: 'a', type: 'text' },
      { name: 'n', type: 'int4' },
    ],
    rows: 90,
    at: (row: number, column: number) => (column === 0 ? `c${row}` : row),
  };
  t.match(chartFor(many), { note: 'Shown: the first 40 of 90 rows.' });
  t.equal(chartFor(many)?.series[0]?.points.length, 40);
  t.equal(timeAt('2026-01-01T00:00:00'), Date.UTC(2026, 0, 1), 'a time without a zone is of UTC');
  t.equal(timeAt('infinity'), null);
});

const COLUMN = { description: null, nullable: false, masked: 'none', use: 'rows', synonyms: [] } as const;
const ENTITY = {
  description: null,
  deprecated: null,
  composition: 'structured',
  primary_key: ['id'],
  entity_key_columns: ['id'],
  time_dimension: null,
  derived: [],
  minimum_group_size: null,
  facets: [],
  metrics: [],
  synonyms: [],
  examples: [],
} as const;
const SCHEMA: Parameters<typeof completionsAt>[2] = {
  entities: [
    {
      ...ENTITY,
      name: 'person',
      fqn: 'osl.entities.person',
      columns: [
        { ...COLUMN, name: 'id', type: 'int4' },
        { ...COLUMN, name: 'email', type: 'text', masked: 'all' },
      ],
    },
    {
      ...ENTITY,
      name: 'Order',
      fqn: 'osl.entities.Order',
      columns: [{ ...COLUMN, name: 'No', type: 'int4' }],
    },
  ],
  facets: [
    {
      name: 'notes',
      fqn: 'osl.facets.notes',
      description: null,
      deprecated: null,
      entity: 'person',
      entity_key: 'id',
      embedding_model: 'm',
      indexed_at: null,
      retrieval: { max_top_k: 5, modes: [], rerankers: [] },
      labels: [],
      columns: [],
      scalar_indexed: [],
      synonyms: [],
      examples: [],
    },
  ],
  metrics: [
    {
      name: 'head_count',
      fqn: 'osl.metrics.head_count',
      description: null,
      deprecated: null,
      entity: 'person',
      kind: 'simple',
      type: 'int8',
      format: null,
      measurable: true,
      synonyms: [],
      examples: [],
    },
  ],
  relationships: [],
  functions: [{ name: 'lower', kind: 'scalar', signatures: ['(text) → text'] }],
};

test('what is offered at the place of `|`', async (t) => {
  const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['select p.| from osl.entities.person p', ['id', 'email'], ['select', 'person']],
    ['select | from person', ['id', 'email', 'head_count', 'lower'], ['No']],
    ['select id from |', ['person', 'Order', 'RETRIEVE'], ['id']],
    ['select id from osl.entities.|', ['person', 'Order'], ['RETRIEVE']],
    ['select measure(|', ['head_count'], ['lower']],
    ["select text from retrieve(facet => '|", ['notes'], ['person']],
    ['select a.id, | from person a join "Order" o on a.id = o."No"', ['email', 'a', 'o'], []],
  ];
  for (const [marked, wanted, others] of cases) {
    const at = marked.indexOf('|');
    const labels = completionsAt(marked.replace('|', ''), at, SCHEMA)?.offers.map(({ label }) => label) ?? [];
    t.strictSame(
      wanted.filter((label) => !labels.includes(label)),
      [],
      marked,
    );
    t.strictSame(
      others.filter((label) => labels.includes(label)),
      [],
      `${marked}: nothing else`,
    );
  }
  for (const marked of ["select 'a| from person", 'select 1 -- in |', 'select 1|'])
    t.equal(completionsAt(marked.replace('|', ''), marked.indexOf('|'), SCHEMA), null, marked);
  const order = completionsAt('select id from ', 15, SCHEMA)?.offers.find(({ label }) => label === 'Order');
  t.equal(order?.text, 'osl.entities."Order"', 'a name with capitals is quoted');
  const email = completionsAt('select p. from person p', 9, SCHEMA)?.offers.find(
    ({ label }) => label === 'email',
  );
  t.match(email?.detail, /masked/);
  t.strictSame(
    [...scopeOf('select \'from x\' from person where a in (select b from "Order" as o)')],
    [
      ['person', 'person'],
      ['o', 'Order'],
    ],
  );
});

test('rows are sorted by the type of their column, NULL last', async (t) => {
  const sorted = (type: string, values: readonly JsonValue[], direction: 'ascending' | 'descending') => {
    const work = sortRows({ rows: values.length, type, at: (row) => values[row] ?? null }, direction);
    for (let step = work.next(); ; step = work.next())
      if (step.done === true) return [...step.value].map((row) => values[row] ?? null);
  };
  const ones = '1'.repeat(40);
  const cases: readonly (readonly [type: string, ascending: readonly JsonValue[]])[] = [
    ['int4', [-2, 0, 9, 10, null]],
    ['int8', ['-9007199254740993', '-9007199254740992', '9007199254740992', '9007199254740993']],
    [
      'numeric',
      [
        '-Infinity',
        `-${ones}`,
        '-0.50',
        '0',
        '0.049',
        '0.05',
        `${ones}.1`,
        `${ones}.11`,
        `${ones}2`,
        'Infinity',
        'NaN',
        null,
      ],
    ],
    ['numeric', [`-1${'0'.repeat(400)}`, `1${'0'.repeat(400)}`, `2${'0'.repeat(400)}`]],
    ['float8', ['-Infinity', -1e300, 0.1, 1e300, 'Infinity', 'NaN']],
    ['bool', [false, true, null]],
    [
      'date',
      [
        '-infinity',
        '0044-03-15 BC',
        '0001-01-01',
        '1969-12-31',
        '2026-01-31',
        '12026-01-01',
        'infinity',
        null,
      ],
    ],
    [
      'timestamptz',
      ['2026-01-31T23:59:01Z', '2026-01-31T23:59:01.05Z', '2026-01-31T23:59:01.5Z', '2026-01-31T23:59:02Z'],
    ],
    [
      'interval',
      ['-1 mons', '-00:00:01', '00:00:00.5', '23:00:00', '1 day', '29 days', '1 mon', '1 year 2 days'],
    ],
    ['money', ['-$1,000.00', '$9.50', '$10.00', '$1,000.00']],
    ['text', ['', 'B', 'a', 'a', 'ab', 'b', 'é', '\uffee', '😀', null]],
    ['text', ['aaaaaaa', 'aaaaaab', 'aaaaaaba', null, null]],
    ['jsonb', [{ a: 1 }, { a: 2 }, null]],
  ];
  for (const [type, ascending] of cases) {
    const values = ascending.filter((value) => value !== null);
    const nulls = ascending.filter((value) => value === null);
    t.strictSame(sorted(type, ascending.toReversed(), 'ascending'), ascending, type);
    t.strictSame(
      sorted(type, ascending, 'descending'),
      [...values.toReversed(), ...nulls],
      `${type}, descending`,
    );
  }
  const many = Array.from({ length: 20_000 }, (_, row) => (row * 7_919) % 1_009);
  const work = sortRows({ rows: many.length, type: 'int4', at: (row) => many[row] ?? 0 }, 'descending');
  let turns = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) turns += 1;
  const expected = many.map((_, row) => row).sort((a, b) => (many[b] ?? 0) - (many[a] ?? 0) || a - b);
  t.strictSame([...step.value], expected, 'merged from several parts, equal values as they came');
  t.ok(turns >= 15, `${turns} turns`);
});

test('times of an answer, to the microsecond and in every year', async (t) => {
  for (const text of ['1970-01-01', '2024-02-29', '2000-03-01', '1900-02-28', '0001-01-01', '9999-12-31'])
    t.strictSame(momentOf(text), { seconds: Date.parse(text) / 1_000, micros: 0 }, text);
  t.strictSame(momentOf('2026-01-31T23:59:01.25Z'), { seconds: 1_769_903_941, micros: 250_000 });
  t.equal(momentOf('0001-01-01')?.seconds, (momentOf('0001-12-31 BC')?.seconds ?? 0) + 86_400);
  t.strictSame([momentOf('infinity'), momentOf('soon')], [null, null]);
});

test('the list beside the editor, and how its names are inserted', async (t) => {
  const names = (search: string, open: readonly string[] = []) =>
    schemaLines(SCHEMA, search, new Set(open)).map(({ name }) => name);
  t.strictSame(names(''), ['person', 'Order', 'head_count']);
  t.strictSame(names('', ['person']), ['person', 'id', 'email', 'Order', 'head_count']);
  t.strictSame(names('MAIL'), ['person', 'email']);
  t.strictSame(names('nothing of that name'), []);
  const line = (name: string) =>
    schemaLines(SCHEMA, '', new Set(['person', 'Order'])).find((one) => one.name === name);
  t.match(line('email'), { kind: 'column', entity: 'person', masked: 'all' });
  const cases: readonly (readonly [marked: string, name: string, result: string])[] = [
    ['|', 'Order', 'osl.entities."Order"'],
    ['select id from |', 'person', 'select id from osl.entities.person'],
    ['select id from|', 'person', 'select id from osl.entities.person'],
    ['select id from osl.entities.|', 'Order', 'select id from osl.entities."Order"'],
    ['select | from person', 'email', 'select email from person'],
    ['select id| from person', 'email', 'select id, email from person'],
    ['select id, |from person', 'email', 'select id, email from person'],
    ['select p.| from person p', 'email', 'select p.email from person p'],
    [
      'select | from person a join "Order" o on a.id = o."No"',
      'email',
      'select a.email from person a join "Order" o on a.id = o."No"',
    ],
    ['select id from person where |', 'email', 'select id from person where email'],
    ['select id from person order by id|', 'email', 'select id from person order by id, email'],
    ['select distinct |', 'head_count', 'select distinct measure(head_count)'],
  ];
  for (const [marked, name, result] of cases) {
    const at = marked.indexOf('|');
    const text = marked.replace('|', '');
    const known = line(name);
    if (known === undefined) throw new Error(`no ${name}`);
    t.equal(text.slice(0, at) + insertionAt(text, at, at, known) + text.slice(at), result, marked);
  }
});

test('the fix that an error offers', async (t) => {
  const cases: readonly (readonly [string, number, string, string, string | null])[] = [
    [
      'select nam from person',
      7,
      'column `nam` is not declared',
      'perhaps you meant `name`',
      'select name from person',
    ],
    [
      'select p.nam from person p',
      7,
      'column `nam` is not declared',
      'perhaps you meant `name`',
      'select p.name from person p',
    ],
    [
      'select * from osl.entities.pakage',
      14,
      'object `osl.entities.pakage` is not declared',
      'perhaps you meant `package`',
      'select * from osl.entities.package',
    ],
    ['select no from x', 7, 'column `no` is not declared', 'perhaps you meant `"No"`', 'select "No" from x'],
    ['select 1', 7, 'something else', 'try another', null],
  ];
  for (const [text, offset, detail, hint, mended] of cases) {
    const fix = fixOf(text, { position: { offset, line: 1, column: offset + 1 }, detail, hint });
    t.equal(fix === null ? null : applied(text, fix), mended, text);
  }
  t.equal(fixOf('x', { position: null, detail: '', hint: 'perhaps you meant `y`' }), null);
  t.match(caretOf('a\n  nam, b', { line: 2, column: 3 }), { shown: '  nam, b', marks: '  ^^^' });
  t.equal(caretOf('a', { line: 9, column: 1 }), null);
});

test('passages part at their spans, in code points', async (t) => {
  t.strictSame(
    stretchesOf('😀 a bb c', [
      [2, 3],
      [4, 6],
    ]),
    [
      { text: '😀 ', isHighlight: false },
      { text: 'a', isHighlight: true },
      { text: ' ', isHighlight: false },
      { text: 'bb', isHighlight: true },
      { text: ' c', isHighlight: false },
    ],
  );
  t.equal(
    stretchesOf('ab', [
      [0, 99],
      [1, 2],
    ])
      .map(({ text }) => text)
      .join(''),
    'ab',
    'no span loses text',
  );
  t.match(
    passageOf({ text: 'a', cite: { doc_id: 'd', start: 1, end: 2, facet: 'f', version: 'v' }, score: 1 }),
    {
      cite: { document: 'd', start: 1, end: 2 },
    },
  );
  t.equal(passageOf({ text: null }), null);
  t.match(passageOf({ text: 'a', cite: 'x', highlights: 'y', redacted_fields: [1, 'n'] }), {
    cite: null,
    redacted: ['n'],
  });
});

test('a masked cell is told apart from NULL', async (t) => {
  t.equal(maskOf('[redacted]', true, 'some'), 'masked');
  t.equal(maskOf(null, true, 'all'), 'masked');
  t.equal(maskOf(null, true, 'some'), 'perhaps', 'masked or NULL: nobody here knows which');
  t.equal(maskOf('x', true, 'some'), 'none');
  t.equal(maskOf(null, false, 'none'), 'none');
  t.equal(maskOf('[redacted]', false, null), 'none', 'a text that only says so');
  const column = { name: 'e', type: 'text', source: 'osl.entities.person.email', redacted: true };
  t.strictSame(whyObjects(column, { redacted_columns: [] }), ['osl.entities.person.email']);
  t.strictSame(whyObjects({ ...column, source: null }, { redacted_columns: ['person.email'] }), [
    'osl.entities.person.email',
  ]);
  t.equal(whyObjects({ ...column, redacted: false }, { redacted_columns: [] }), null);
});

test('rows of an answer, column by column', async (t) => {
  const store = new RowStore();
  for (let i = 0; i < 3_000; i += 1)
    store.add({ n: i % 7 === 0 ? null : i, mixed: i < 2_000 ? i : `t${i}`, text: 'same' });
  t.equal(store.rows, 3_000);
  t.strictSame(
    [store.at(0, 0), store.at(8, 0), store.at(7, 0), store.at(1_999, 1), store.at(2_999, 1), store.at(5, 2)],
    [null, 8, null, 1_999, 't2999', 'same'],
  );
  t.strictSame([store.at(3_000, 0), store.at(0, 9), store.at(-1, 0)], [null, null, null]);
  const kinds: Readonly<Record<string, (i: number) => JsonValue>> = {
    texts: (i) => (i % 5 === 0 ? null : i % 3 === 0 ? '' : `é😀${i}`),
    'texts after NULLs': (i) => (i < 1_500 ? null : String(i)),
    'numbers after texts': (i) => (i < 1_500 ? `t${i}` : i),
    'texts after numbers': (i) => (i < 1_500 ? i : null),
    'anything after NULLs': (i) => (i < 1_100 ? null : i % 2 === 0 ? true : { a: i }),
    'objects after texts': (i) => (i < 1_100 ? 'x' : [i]),
    NULLs: () => null,
  };
  for (const [kind, value] of Object.entries(kinds)) {
    const one = new RowStore();
    const values = Array.from({ length: 2_500 }, (_, i) => value(i));
    for (const c of values) one.add({ c });
    const found = values.map((_, row) => one.at(row, 0));
    t.equal(JSON.stringify(found), JSON.stringify(values), kind);
  }
  const lines = new LineSplitter();
  t.strictSame([...lines.add('a\nb'), ...lines.add('c\n\nd'), lines.rest], ['a', 'bc', '', 'd']);
});

test('the window of a long table', async (t) => {
  const view = { rows: 1_000_000, rowHeight: 28, viewHeight: 560, scrollTop: 0 };
  t.match(windowOf(view), { first: 0, top: 0, height: TALLEST });
  const end = windowOf({ ...view, scrollTop: TALLEST });
  t.equal(end.end, 1_000_000, 'the last row is reached');
  t.ok(end.end - end.first < 50, 'and few are drawn');
  const last = end.top + (end.end - end.first) * 28;
  t.ok(Math.abs(last - TALLEST) < 1, 'and it ends where the table does');
  for (const row of [0, 499_999, 999_999]) {
    const at = windowOf({ ...view, scrollTop: scrollTo(row, view) });
    t.ok(at.first <= row && row < at.end, `row ${row} is drawn once it is scrolled to`);
  }
  t.strictSame(windowOf({ rows: 3, rowHeight: 28, viewHeight: 560, scrollTop: 90 }), {
    first: 0,
    end: 3,
    top: 0,
    height: 84,
  });
});

test('questions that are kept, and ways to take one along', async (t) => {
  const kept = new Map<string, string>();
  const shelf = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => void kept.set(key, text),
  };
  t.strictSame(readLibrary(shelf, 'user:a'), { history: [], saved: [] });
  const asked = (text: string) => ({ text, kind: 'osql' as const, at: 1 });
  let library = withAsked(
    withAsked(withAsked(readLibrary(shelf, 'user:a'), asked('1')), asked('2')),
    asked('1'),
  );
  t.strictSame(
    library.history.map(({ text }) => text),
    ['1', '2'],
    'each once, newest first',
  );
  const saving = (text: string, name: string): void => {
    const next = withSaved(library, { ...asked(text), name });
    if (next === null) throw new Error('the library is full');
    library = next;
  };
  saving('3', 'b');
  saving('4', 'b');
  t.ok(writeLibrary(shelf, 'user:a', library));
  t.strictSame(readLibrary(shelf, 'user:a').saved, [{ ...asked('4'), name: 'b' }]);
  t.strictSame(readLibrary(shelf, 'user:b').saved, [], 'another caller has its own');
  for (let i = 1; i < 500; i++) saving('5', `a${i}`);
  t.equal(withSaved(library, { ...asked('6'), name: 'z' }), null, 'nothing is dropped for a new one');
  saving('7', 'b');
  for (const text of ['nonsense', '7', '{"history":[1,{}],"saved":[{"text":"x"}]}']) {
    kept.set('osl.questions user:a', text);
    t.strictSame(readLibrary(shelf, 'user:a'), { history: [], saved: [] }, text);
  }
  const copied = {
    text: "select 'it''s' -- $(rm)",
    kind: 'osql' as const,
    origin: 'https://osl.example',
    wire: { port: 5432, tls: true },
    chain: ['user:a', 'agent:b'],
    localTokens: true,
  };
  for (const way of WAYS) t.match(copyAs(way, copied), /it''s|it'\\'''\\''s/, way);
  t.match(copyAs('psql', copied), /PGSSLMODE=require psql [\s\S]*-h osl\.example -p 5432 -U agent:b/);
  t.match(copyAs('curl', { ...copied, localTokens: false }), /Bearer \$OSL_TOKEN"/);
  t.match(JSON.parse(copyAs('mcp', copied)), {
    method: 'tools/call',
    params: { name: 'semantic_query', arguments: { osql: copied.text } },
  });
  t.equal(shellQuoted("a'b $(c)"), `'a'\\''b $(c)'`);
});

test('plans, addresses and tokens', async (t) => {
  const tree = planTree({
    step: 'select',
    detail: { columns: ['a'], predicates: 0, ordered: true },
    inputs: [
      {
        step: 'scan',
        detail: {
          object: 'osl.entities.person',
          columns: [
            { name: 'email', masked: 'all' },
            { name: 'id', masked: 'none' },
          ],
          row_filter: 'applied',
        },
        inputs: [],
      },
    ],
  });
  t.match(tree, {
    title: 'select',
    facts: [{ text: 'a' }, { text: 'ordered' }],
    below: [{ title: 'scan osl.entities.person' }],
  });
  t.strictSame(
    tree.below[0]?.facts.map(({ tone }) => tone),
    ['plain', 'masked', 'filtered'],
  );
  t.equal(planTree({ step: 1, inputs: 'x' }).title, '');
  t.match(placeOf('#/map?x=1'), { screen: 'map' });
  t.equal(placeOf('#/nonsense').screen, 'ask');
  t.equal(placeOf(hashOf('ask', { q: 'a&b#c' })).parameters.get('q'), 'a&b#c');
  t.equal(identityOf('nonsense'), null);
  t.equal(identityOf('a.b.c'), null);
});
