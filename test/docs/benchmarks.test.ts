import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { benchmarkPage, picturesOf } from '../../site/build/benchmarks.js';
import { chartsOf, inWords } from '../../site/build/charts.js';
import { resultsOf } from '../../site/build/figures.js';
import { ROOMS, spine } from '../../site/build/spine.js';
import { ROOT } from '../tools/cli/support.js';
import { readHouse } from './house.js';

const DOCS = join(ROOT, 'docs');
const TEXT = readFileSync(join(ROOT, 'bench', 'RESULTS.md'), 'utf8');
const results = resultsOf(TEXT);
const REWRITE = 'run OSL_WRITE_DOCS=1 npm test to write it anew';

function holds(path: string, meant: string): boolean {
  const file = join(DOCS, path);
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(file, meant);
  return existsSync(file) && readFileSync(file, 'utf8') === meant;
}

test('docs/benchmarks.md has the figures of bench/RESULTS.md, and its pictures are made of them', (t) => {
  const page = readFileSync(join(DOCS, 'benchmarks.md'), 'utf8');
  t.ok(holds('benchmarks.md', benchmarkPage(page, results)), REWRITE);
  const pictures = picturesOf(results);
  for (const [path, svg] of pictures) t.ok(holds(path, svg), `${path}: ${REWRITE}`);
  const there = readdirSync(join(DOCS, 'pictures')).filter((name) => name.startsWith('bench-'));
  t.strictSame(
    there.map((name) => `pictures/${name}`).toSorted(),
    [...pictures.keys()].toSorted(),
    'and no other',
  );
  t.end();
});

test('no chart has a figure that the results have not', (t) => {
  const [, measured = ''] = /^\| wire\.point\.c64\.vs_direct \| (\d+) \|/m.exec(TEXT) ?? [];
  const changed = resultsOf(TEXT.replaceAll(`| ${measured} |`, '| 19999 |'));
  const words = chartsOf(changed).map(inWords).join('\n');
  t.match(words, /19,999 q\/s/, 'a figure is read, not written');
  t.throws(
    () => chartsOf(resultsOf(TEXT.replace(/^\| wire\.point\.c16\..*\n/gm, ''))),
    /no figure wire\.point\.c16/,
  );
  t.throws(() => resultsOf(TEXT.replace('<!-- rest -->', '')).made('rest'), /no section rest/);
  t.end();
});

test('each picture says in words what it shows', (t) => {
  for (const [path, svg] of picturesOf(results)) {
    const [, about = ''] = /<desc id="about">([^<]+)<\/desc>/.exec(svg) ?? [];
    // The name of a commit may be digits alone; a figure of so many has commas.
    const bars = [...svg.matchAll(/<text[^>]*>([\d.,]+)<\/text>/g)]
      .map(([, figure = '']) => figure)
      .filter((figure) => !/^\d{7,}$/.test(figure));
    t.ok(bars.length > 3, path);
    t.strictSame(
      bars.filter((figure) => !about.includes(` ${figure} `)),
      [],
      path,
    );
  }
  t.end();
});

test('the drawn spine names rooms of the house, by their names', (t) => {
  t.ok(holds('pictures/spine.svg', spine()), REWRITE);
  const { rooms } = readHouse();
  t.strictSame(
    ROOMS.filter((room) => !rooms.includes(room)),
    [],
  );
  for (const room of new Set(ROOMS)) t.ok(spine().includes(`>${room}</text>`), room);
  t.end();
});
