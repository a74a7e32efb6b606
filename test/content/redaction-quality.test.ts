import { join } from 'node:path';
import { test } from 'tap';
import { DETECTOR_NAMES } from '../../src/content/index.js';
import { detectorsOf } from '../../src/content/redact/detectors/detectors.js';
import { type DeclaredValue, ValueMatcher } from '../../src/content/redact/matcher.js';
import { keptTable } from '../docs/kept-table.js';
import { DECLARED, DETECTED } from './labelled.js';

/** Recall and precision of redaction on labelled text, by script and detector. */

interface Span {
  readonly start: number;
  readonly end: number;
}

interface Score {
  readonly group: string;
  readonly wanted: number;
  readonly found: number;
  readonly right: number;
  /** Spans that were missed, and spans that were found in error. */
  readonly wrong: readonly string[];
}

const BEGIN = '<!-- redaction: OSL_WRITE_DOCS=1 node dist/test/content/redaction-quality.test.js -->';
const END = '<!-- end of redaction -->';

/** The text without its labels, and where they stood. */
function unlabelled(labelled: string): { readonly text: string; readonly wanted: readonly Span[] } {
  const wanted: Span[] = [];
  let text = '';
  for (const [i, piece] of labelled.split(/[⟦⟧]/u).entries()) {
    if (i % 2 === 1) wanted.push({ start: text.length, end: text.length + piece.length });
    text += piece;
  }
  return { text, wanted };
}

function scoreOf(group: string, labelled: readonly string[], find: (text: string) => readonly Span[]): Score {
  const score = { group, wanted: 0, found: 0, right: 0, wrong: [] as string[] };
  for (const { text, wanted } of labelled.map(unlabelled)) {
    const found = find(text);
    const isSame =
      (a: Span) =>
      (b: Span): boolean =>
        a.start === b.start && a.end === b.end;
    score.wanted += wanted.length;
    score.found += found.length;
    for (const span of wanted) {
      const said = text.slice(span.start, span.end);
      if (found.some(isSame(span))) score.right++;
      else score.wrong.push(`missed ${said}`);
    }
    for (const span of found)
      if (!wanted.some(isSame(span))) score.wrong.push(`took ${text.slice(span.start, span.end)} in ${text}`);
  }
  return score;
}

/** Spans that no longer one contains: one detector may have two ways to the same. */
function outermost(spans: readonly Span[]): readonly Span[] {
  const inside = (a: Span, b: Span): boolean => b.start <= a.start && a.end <= b.end;
  return spans.filter(
    (span, i) => !spans.some((other, j) => i !== j && inside(span, other) && (!inside(other, span) || j < i)),
  );
}

const scores: Score[] = DECLARED.map(({ group, values, texts }) => {
  const declared = values.map((value): DeclaredValue => ({ value, label: 'pii' }));
  const matcher = new ValueMatcher(declared, 3);
  return scoreOf(`values: ${group}`, texts, (text) => outermost(matcher.find(text)));
});
for (const [name, texts] of Object.entries(DETECTED)) {
  const phoneCountries = name === 'phone' ? ['DE', 'GB'] : [];
  const detectors = await detectorsOf({ detectors: [name], phoneCountries });
  scores.push(
    scoreOf(`\`${name}\``, texts, (text) => outermost(detectors.flatMap(([, detect]) => [...detect(text)]))),
  );
}

test('every declared value and every detector, on labelled text in ten scripts', async (t) => {
  t.same(Object.keys(DETECTED).sort(), [...DETECTOR_NAMES].sort(), 'each detector has its texts');
  for (const { group, wanted, wrong } of scores) {
    t.ok(wanted > 0, group);
    t.same(wrong, [], group);
  }
});

test('docs/content.md has the figures', async (t) => {
  const percent = (part: number, whole: number): string =>
    whole === 0 ? '–' : `${Math.round((100 * part) / whole)} %`;
  const rows = scores.map(
    ({ group, wanted, found, right }) =>
      `| ${group} | ${wanted} | ${percent(right, found)} | ${percent(right, wanted)} |`,
  );
  const head = ['| what | items | precision | recall |', '| --- | ---: | ---: | ---: |'];
  keptTable(t, join(process.cwd(), 'docs', 'content.md'), [BEGIN, END], [...head, ...rows]);
});
