import { test } from 'tap';
import { type ChunkedBy, CodePoints } from '../../src/content/chunk.js';
import { chunkSpans, countCodePoints } from '../../src/content/index.js';
import { htmlText } from '../../src/content/indexer/source.js';
import { fc } from '../support/fast-check.js';
import { processorMs } from '../support/processor.js';
import { sliceCodePoints } from './reference.js';

const chunks = (text: string, maxChars: number, overlapChars = 0): string[] =>
  chunkSpans(text, { maxChars, overlapChars }).map(({ start, end }) => text.slice(start, end));

test('chunks end at headings, then paragraphs, then sentences, then words', async (t) => {
  t.strictSame(chunks('aaaa bbbb.\n\ncccc dddd\n# Head\neeee', 28), [
    'aaaa bbbb.\n\ncccc dddd',
    '# Head\neeee',
  ]);
  t.strictSame(chunks('aaaa bbbb. cc\n\ndddd eeee ffff gg', 20), ['aaaa bbbb. cc', 'dddd eeee ffff gg']);
  t.strictSame(chunks('aaaa bbbb cc. dddd eeee ffff', 20), ['aaaa bbbb cc.', 'dddd eeee ffff']);
  t.strictSame(chunks('aaaa bbbb cccc dddd eeee ffff', 20), ['aaaa bbbb cccc dddd', 'eeee ffff']);
  t.strictSame(chunks('a'.repeat(25), 10), ['a'.repeat(10), 'a'.repeat(10), 'a'.repeat(5)]);
  t.strictSame(chunks('https://example.org/aaaaaaaaaa', 20), ['https://example.org/', 'aaaaaaaaaa']);
  t.strictSame(chunks(' \n\t ', 20), []);
  t.strictSame(chunks('  short ', 20), ['short']);
});

test('neighbours overlap by whole sentences or words', async (t) => {
  t.strictSame(chunks('One two three. Four five six. Seven eight nine ten.', 32, 16), [
    'One two three. Four five six.',
    'Four five six. Seven eight nine',
    'eight nine ten.',
  ]);
});

const piece = fc.constantFrom(
  'a',
  'word ',
  '. ',
  '\n',
  '\n\n',
  '# ',
  '😀',
  'é',
  '日本',
  '-',
  ' ',
  'longlonglong',
  '\ud83d',
);

test('property: chunks are in order, bounded, whole characters, and leave nothing out', async (t) => {
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 80 }),
      fc.integer({ min: 4, max: 50 }),
      fc.double({ min: 0, max: 0.5, noNaN: true }),
      (pieces, maxChars, overlap) => {
        const text = pieces.join('');
        const spans = chunkSpans(text, { maxChars, overlapChars: Math.floor(maxChars * overlap) });
        let [covered, last] = [0, -1];
        for (const { start, end } of spans) {
          if (start <= last || end <= start || end - start > maxChars) return false;
          if (/\S/.test(text.slice(covered, start))) return false;
          if (/^\s|\s$/.test(text.slice(start, end))) return false;
          if (/[\ud800-\udbff](?=[\udc00-\udfff])/.test(text.slice(start - 1, start + 1)) && start > 0) {
            if (/^[\udc00-\udfff]/.test(text.slice(start)) && /[\ud800-\udbff]$/.test(text.slice(0, start)))
              return false;
          }
          [covered, last] = [Math.max(covered, end), start];
        }
        return !/\S/.test(text.slice(covered));
      },
    ),
    { numRuns: 5_000 },
  );
  t.pass();
});

test('property: offsets in code points cut the same text', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(), fc.nat(), (text, a, b) => {
      const letters = [...text];
      const [from, to] = [Math.min(a, b) % (letters.length + 1), Math.max(a, b) % (letters.length + 1)];
      if (from > to) return true;
      const start = letters.slice(0, from).join('').length;
      const end = letters.slice(0, to).join('').length;
      const span = new CodePoints(text).span({ start, end });
      return (
        span.start === from &&
        span.end === to &&
        sliceCodePoints(text, from, to) === text.slice(start, end) &&
        countCodePoints(text) === letters.length
      );
    }),
  );
  t.pass();
});

test('cut by headings, each begins a passage, and code is none', (t) => {
  const text = '# One\n\nFirst.\n\n```sh\n# no heading\n```\n\n## Two\nSecond. Third.\n### Three';
  const by = (how: ChunkedBy, maxChars = 200, overlapChars = 0): string[] =>
    chunkSpans(text, { maxChars, overlapChars, by: how }).map(({ start, end }) => text.slice(start, end));
  t.strictSame(by('heading'), [
    '# One\n\nFirst.\n\n```sh\n# no heading\n```',
    '## Two\nSecond. Third.',
    '### Three',
  ]);
  t.strictSame(by('structure'), [text], 'one passage, as it fits');
  t.end();
});

test('cut by sentences and by length', (t) => {
  const text = `${'Short one. '.repeat(5)}\n\nA paragraph that goes on for a while without an end and then ends.`;
  const by = (how: ChunkedBy): string[] =>
    chunkSpans(text, { maxChars: 60, overlapChars: 0, by: how }).map(({ start, end }) =>
      text.slice(start, end),
    );
  t.strictSame(by('sentence')[0], 'Short one. Short one. Short one. Short one. Short one.');
  t.ok((by('fixed')[0]?.length ?? 0) > 54, 'over the end of a paragraph');
  t.ok(by('fixed').every((part) => part.length <= 60));
  t.end();
});

test('HTML is read without its tags', (t) => {
  t.equal(
    htmlText(`<!doctype html><html><head><title>Mills</title><style>p { color: red }</style>
      <script>if (a < b) document.write("<p>x</p>")</script></head>
      <body><h1>On  mills</h1><p>By <b>Z</b>o&euml; &Aring;ngstr&#246;m&nbsp;&amp; co &lt;x@y.example&gt;<!-- <p>hidden --></p>
      <ul><li>one<li>two</ul>1 < 2 && 3 > 2<br>end<table><tr><td>a</td><td>b</td></tr></table></body>`),
    'Mills\n\n# On mills\n\nBy Zoë Ångström & co <x@y.example>\n\n- one\n- two\n\n1 < 2 && 3 > 2\nend\n\na b',
  );
  t.equal(htmlText('a < b'), 'a < b');
  t.equal(htmlText('<p>open <b'), 'open <b');
  t.equal(htmlText('x<!-- never closed <p>y</p>'), 'x');
  t.equal(htmlText('&#0;&#xd800;&#1114112;&nosuch;&qacute;'), '\ufffd\ufffd\ufffd&nosuch;&qacute;');
  t.equal(
    htmlText('Ko&zcaron;&aacute;k, &Lstrok;&oacute;d&zacute;, Erd&#00000000337;s'),
    'Kožák, Łódź, Erdős',
  );
  t.equal(htmlText('&sup2;&times;&Aring;&ccedil;&yuml;&Oslash;&THORN;&iquest;&sdot;'), '²×ÅçÿØÞ¿⋅');
  for (const bad of ['<a', '<!--', '<script>', '&', '</p', '<a "']) {
    const begun = processorMs();
    htmlText(`${bad.repeat(200_000)}>`);
    t.ok(processorMs() - begun < 2_000, `many of ${bad}`);
  }
  t.end();
});
