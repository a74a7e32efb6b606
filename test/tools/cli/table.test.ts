import type { MetricFormat } from 'osl-compiler';
import t from 'tap';
import { formatAnswer, formatAnswerCsv } from '../../../cli/answer.js';
import type { AnswerBody } from '../../../cli/client.js';
import { formatProblem } from '../../../cli/reply.js';
import { formatFigure, formatTable, widthOf } from '../../../cli/table.js';

const WIDTHS: readonly (readonly [string, number])[] = [
  ['', 0],
  ['abc', 3],
  ['Zürich', 6],
  ['Zu\u0308rich', 6],
  ['日本語', 6],
  ['한국', 4],
  ['ＡＢ', 4],
  ['😀', 2],
  ['👩‍👩‍👧', 2],
  ['🇨🇭', 2],
  ['☂', 1],
  ['☂️', 2],
  ['a\u200bb', 2],
  ['Ελλ', 3],
  ['שלום', 4],
];

t.test('the width of a text is what a terminal gives it', async (t) => {
  for (const [text, width] of WIDTHS) t.equal(widthOf(text), width, JSON.stringify(text));
});

const NAME = { name: 'name', align: 'left' } as const;
const COUNT = { name: 'n', align: 'right' } as const;

t.test('texts stand left, numbers right, NULL is shown, wide characters take two columns', async (t) => {
  const rows = [
    ['ajv', '1'],
    ['日本語', '1234'],
    [null, null],
  ];
  t.equal(
    formatTable([NAME, COUNT], rows),
    ['  name  |  n', '--------+------', ' ajv    |    1', ' 日本語 | 1234', ' NULL   | NULL'].join('\n'),
  );
});

t.test('a table without rows keeps its head, one without columns has none', async (t) => {
  t.equal(formatTable([NAME], []), ' name\n------');
  t.equal(formatTable([], []), '');
});

t.test('what would draw on the terminal is shown as an escape', async (t) => {
  const shown = formatTable([NAME], [['a\u001b[31mb\nc\u202ed\u0007']]);
  t.match(shown, 'a\\x1b[31mb\\nc\\u{202e}d\\x07');
  t.equal(shown.split('\n').length, 3);
});

t.test('a table that is too wide for the terminal becomes one record a row', async (t) => {
  const rows = [
    ['x'.repeat(30), '1'],
    ['y', '2'],
  ];
  const text = formatTable([NAME, COUNT], rows, 20);
  t.equal(text, `-[ row 1 ]-\nname | ${'x'.repeat(30)}\nn    | 1\n-[ row 2 ]-\nname | y\nn    | 2`);
});

const ANSWER: AnswerBody = {
  request_id: 'r',
  columns: [
    { name: 'email', type: 'text', redacted: true },
    { name: 'n', type: 'int8', redacted: false },
    { name: 'tags', type: 'text[]', redacted: false },
  ],
  rows: [
    { email: '[redacted]', n: '9007199254740993', tags: ['a', 'b'] },
    { email: '', n: null, tags: null },
  ],
  row_count: 2,
  truncated: true,
  redacted_columns: ['person.email'],
};

t.test('an answer says how many rows, what is masked, and that there are more', async (t) => {
  const lines = formatAnswer(ANSWER).split('\n');
  t.equal(lines[2], ' [redacted] | 9007199254740993 | ["a","b"]');
  t.same(lines.slice(-3), [
    '(the first 2 rows)',
    'masked: person.email',
    'truncated: rows beyond the limit of the server, or of `per_hop`, are missing',
  ]);
  t.match(
    formatAnswer({ ...ANSWER, rows: ANSWER.rows.slice(1), row_count: 1, truncated: false }),
    '(1 row)\n',
  );
  const filtered = { ...ANSWER, redacted_columns: [], redacted_conditions: ['person.email'] };
  t.equal(
    formatAnswer(filtered).split('\n').at(-2),
    'warning: masked column used in a filter, join, group or sort: person.email',
  );
});

t.test('CSV tells NULL from the empty text, and quotes what needs it', async (t) => {
  t.equal(formatAnswerCsv(ANSWER), 'email,n,tags\r\n[redacted],9007199254740993,"[""a"",""b""]"\r\n"",,');
});

t.test(
  'CSV holds nothing that a spreadsheet calculates or a terminal obeys, and numbers stay numbers',
  async (t) => {
    const field = (value: string, type = 'text'): string => {
      const columns = [{ name: 'c', type, redacted: false }];
      return formatAnswerCsv({ ...ANSWER, columns, rows: [{ c: value }] }).replace('c\r\n', '');
    };
    for (const formula of [
      '=1+1',
      '+1+1',
      '-1+1',
      '@SUM(A1)',
      ' =1+1',
      '\u00a0=1',
      '＝1+1',
      "=cmd|' /C calc'!A0",
      '-x',
    ])
      t.equal(field(formula), `'${formula}`);
    t.equal(field('\t=1'), "'\t=1");
    t.equal(field('=HYPERLINK("http://x","y")'), `"'=HYPERLINK(""http://x"",""y"")"`);
    t.equal(field('\r=1'), "'\\r=1");
    t.equal(field('\n=1'), `"'\n=1"`);
    for (const number of ['-5', '+5', '-0.5', '-1e-9', '5'] as const) t.equal(field(number), number);
    for (const number of ['-5', '-Infinity', '-1e300']) t.equal(field(number, 'float8'), number);
    t.equal(field('a\u001b]0;owned\u0007b'), 'a\\x1b]0;owned\\x07b');
    t.equal(field('\u009b31m\u202e'), '\\x9b31m\\u{202e}');
    t.equal(field('two\r\nlines\tand a tab'), '"two\r\nlines\tand a tab"');
    t.equal(field('a\rb'), 'a\\rb');
    t.equal(field('plain = text - @ +'), 'plain = text - @ +');
  },
);

t.test(
  'a caret stands under the offending word, also after wide characters and in a later line',
  async (t) => {
    const problem = { code: 'E0512', detail: 'no', hint: null, request_id: null };
    const at = (source: string, offset: number, line: number, column: number): string =>
      formatProblem({ ...problem, position: { offset, line, column } }, source);
    t.equal(
      at('select nam from x', 7, 1, 8),
      'error E0512: no\n    1 | select nam from x\n      |        ^^^',
    );
    t.equal(
      at('select\n  "日" , foo', 15, 2, 9),
      'error E0512: no\n    2 |   "日" , foo\n      |          ^^^',
    );
    t.equal(
      at('select "日本語" from x', 7, 1, 8),
      'error E0512: no\n    1 | select "日本語" from x\n      |        ^^^^^^^^',
      'a caret is as wide as the word',
    );
    t.equal(
      at('select 1,\r\n\t\t"😀" , foo\r\nfrom x', 20, 2, 10),
      'error E0512: no\n    2 |         "😀" , foo\n      |                ^^^',
      'tabs, an emoji, CR LF',
    );
    t.equal(
      at("select 'e\u0301', foo", 13, 1, 14),
      "error E0512: no\n    1 | select 'e\u0301', foo\n      |             ^^^",
      'a combining accent takes no room',
    );
    t.equal(
      at("select 'a\rb', foo\nfrom x", 14, 1, 15),
      "error E0512: no\n    1 | select 'a\\rb', foo\n      |                ^^^",
      'a lone carriage return ends no line',
    );
    t.notMatch(
      at(`select ${"'😀', ".repeat(60)}foo`, 367, 1, 368),
      /[\ud800-\udbff](?![\udc00-\udfff])/,
      'no half of a pair',
    );
    t.match(at(`select ${'x, '.repeat(100)}foo`, 307, 1, 308), /\n {6}\| {1,70}\^\^\^$/);
    t.equal(
      formatProblem({ ...problem, position: null, hint: 'h', request_id: 'r' }, ''),
      'error E0512: no\n  hint: h\n  request: r',
    );
  },
);

t.test('a figure is shown as its metric says, and written to CSV as it is', async (t) => {
  const shown = (value: string, format: MetricFormat): string => formatFigure(value, format);
  t.equal(shown('0.12345', { kind: 'percent' }), '12.3%');
  t.equal(shown('-0.005', { kind: 'percent', decimals: 0 }), '-1%');
  t.equal(shown('-0.004', { kind: 'percent', decimals: 0 }), '0%');
  t.equal(shown('2', { kind: 'percent', decimals: 2 }), '200.00%');
  t.equal(
    shown('99999999999999999999.995', { kind: 'currency', currency: 'EUR' }),
    '100000000000000000000.00 EUR',
  );
  t.equal(shown('3', { kind: 'number', unit: 'kg' }), '3 kg');
  t.equal(shown('1.50', { kind: 'number' }), '1.50');
  t.equal(shown('NaN', { kind: 'currency' }), 'NaN');
  t.equal(shown('1e21', { kind: 'percent' }), '1e21');
  const column = { name: 'share', type: 'numeric', redacted: false, format: { kind: 'percent' } as const };
  const answer = {
    ...ANSWER,
    columns: [column],
    rows: [{ share: 0.5 }, { share: null }],
    redacted_columns: [],
  };
  t.match(formatAnswer(answer), /50\.0%/);
  t.notMatch(formatAnswerCsv(answer), /%/);
});
