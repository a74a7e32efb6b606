import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { brokenLinks, markdownIn } from '../../site/build/links.js';
import { outlineOf } from '../../site/build/markdown.js';
import { sectionsOf } from '../../site/build/pages.js';
import { ROOT } from '../tools/cli/support.js';

/** Pages that somebody reads where they stand; those of `docs/` are the site, too. */
const BESIDE = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'bench/RESULTS.md',
  'compiler/README.md',
  'clients/typescript/README.md',
];

test('every link between pages and files leads to something that is there, and every anchor to a heading', (t) => {
  const files = [...markdownIn(ROOT, 'docs'), ...BESIDE.filter((file) => existsSync(join(ROOT, file)))];
  t.ok(files.length > 100, `${files.length} pages`);
  t.strictSame(brokenLinks(ROOT, files), []);
  t.end();
});

test('the files that the threat model names exist', (t) => {
  const page = readFileSync(join(ROOT, 'docs', 'threat-model.md'), 'utf8');
  const cells = page
    .split('\n')
    .flatMap((line) => (line.startsWith('|') ? (line.split('|').at(-2) ?? '') : []));
  const missing = cells.flatMap((cell) => {
    const words = [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);
    const folders = words.filter((word) => word.includes('/')).map((word) => join(word, '..'));
    const files = words.filter((word) => /^\S+\.tsx?$|^\S+\/$/.test(word));
    return files.filter((file) => !['', ...folders].some((folder) => existsSync(join(ROOT, folder, file))));
  });
  t.strictSame(missing, []);
  t.end();
});

test('a link that leads nowhere is found', (t) => {
  const dir = t.testdir({
    'a.md': [
      '# One `two` three',
      '[well](b.md#four-_five_-six) and [itself](#one-two-three)',
      '`[no link](nowhere.md)`',
      '```',
      '[no link](nowhere.md)',
      '```',
      '[gone](gone.md), ![a picture](gone.png), [no heading](b.md#seven), [no anchors there](c.ts#L1)',
      '[out](../../out.md) [absolute](/b.md) [elsewhere](https://example.com/gone)',
    ].join('\n'),
    'b.md': '## Four _five_ six\n## Four _five_ six\n[the second](#four-five-six-1)\n',
    'c.ts': '',
  });
  t.strictSame(
    brokenLinks(dir, ['a.md', 'b.md']).map(({ at, href }) => `${at} ${href}`),
    [
      'a.md:2 b.md#four-_five_-six',
      'a.md:7 gone.md',
      'a.md:7 gone.png',
      'a.md:7 b.md#seven',
      'a.md:7 c.ts#L1',
      'a.md:8 ../../out.md',
      'a.md:8 /b.md',
    ],
  );
  t.end();
});

test('headings have the anchors that they have on GitHub', (t) => {
  const anchors = (text: string): readonly string[] => [...outlineOf(text).anchors];
  t.strictSame(anchors('# The `osl` command: what, & why?\n## Limits\n## Limits\n### a_b `c_d`'), [
    'the-osl-command-what--why',
    'limits',
    'limits-1',
    'a_b-c_d',
  ]);
  t.strictSame(anchors('# Two gateways [from](x.md) an _empty_ machine'), [
    'two-gateways-from-an-empty-machine',
  ]);
  t.end();
});

test('the changelog has each entry once and below its topic, and is short enough to read before an upgrade', (t) => {
  const [, ...releases] = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split(/^## /m);
  t.ok(releases.length > 0);
  for (const release of releases) {
    const [heading = ''] = release.split('\n', 1);
    const entries: readonly string[] = release.match(/^- .*/gm) ?? [];
    t.strictSame(
      entries.filter((entry, index) => entries.indexOf(entry) !== index),
      [],
      `entries repeated in ${heading}`,
    );
    t.notMatch(release.split(/^### /m)[0] ?? '', /^- /m, `entries without a topic in ${heading}`);
    t.ok(release.split(/\s+/).length < 4_500, `${heading} has fewer than 4,500 words`);
  }
  t.end();
});

test('the index of decisions lists each once, under its title', (t) => {
  const folder = join(ROOT, 'docs', 'decisions');
  const listed = [
    ...readFileSync(join(folder, 'README.md'), 'utf8').matchAll(/^- (\d+): \[(.*)\]\((.*)\)$/gm),
  ].map(([, number, title, file]) => `${file}: ${number}. ${title}`);
  const pages = readdirSync(folder).filter((name) => name !== 'README.md');
  t.strictSame(
    listed.sort(),
    pages.map((name) => `${name}: ${/^# (.*)/.exec(readFileSync(join(folder, name), 'utf8'))?.[1]}`).sort(),
    'a new decision is a line of docs/decisions/README.md, below its topic',
  );
  t.end();
});

test('pages write the command as docs/README.md says: `npx osl` on the first pages alone', (t) => {
  const first = ['README.md', 'docs/README.md', 'docs/getting-started.md', 'docs/operations.md'];
  const pages = ['docs', 'docs/cookbook'].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  );
  const saying = [...pages, 'README.md'].filter((page) =>
    /\bnpx osl(?!-gateway)\b/.test(readFileSync(join(ROOT, page), 'utf8')),
  );
  t.strictSame(saying.sort(), first.sort());
  t.match(
    readFileSync(join(ROOT, 'docs/README.md'), 'utf8'),
    '**The command is written `osl` on every page.**',
  );
  t.end();
});

/** Tasks of a reader, as words that the first page must have beside the link, and the page of each. */
const TASKS: readonly (readonly [words: RegExp, page: string])[] = [
  [/psql/, 'bi.md'],
  [/Tableau/, 'bi.md'],
  [/Power BI/, 'bi.md'],
  [/Metabase/, 'bi.md'],
  [/Superset/, 'bi.md'],
  [/from a program/, 'rest.md'],
  [/AI agent/, 'mcp.md'],
  [/publish a change/, 'publishing.md'],
  [/write a policy/, 'policy.md'],
  [/test it/, 'policy-tests.md'],
  [/try the compiler/, 'playground.md'],
  [/row security that a database has/, 'from-row-security.md'],
  [/operate it/, 'operations.md'],
  [/several database servers/, 'scale-out.md'],
];

test('each task of a reader has a page, which the first page and the menu of the site lead to', (t) => {
  const lines = readFileSync(join(ROOT, 'docs/README.md'), 'utf8').split('\n');
  const menu = sectionsOf(join(ROOT, 'docs')).flatMap(({ title, pages }) =>
    title === 'More' ? [] : pages.map(({ path }) => path),
  );
  for (const [words, page] of TASKS) {
    t.ok(
      lines.some((line) => line.startsWith('|') && words.test(line) && line.includes(`](${page})`)),
      `${words}: ${page} on the first page`,
    );
    t.ok(menu.includes(page), `${page} in the menu`);
  }
  t.end();
});
