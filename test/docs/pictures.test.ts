import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { markdownIn } from '../../site/build/links.js';
import { PICTURE_NAMES, stalePictures } from '../console/support/picture-sources.js';
import { ROOT } from '../tools/cli/support.js';

const FOLDER = join(ROOT, 'docs', 'pictures');

test('no screenshot is older than what it shows', (t) => {
  t.strictSame(stalePictures(), [], 'run npm run pictures, look at them, and commit them');
  const there = readdirSync(FOLDER).filter((name) => name.endsWith('.png'));
  t.strictSame(there.toSorted(), PICTURE_NAMES.map((name) => `${name}.png`).toSorted());
  t.end();
});

test('each picture is on a page, and the pages of README and docs show no other', (t) => {
  const pages = ['README.md', ...markdownIn(ROOT, 'docs')].map((page) =>
    readFileSync(join(ROOT, page), 'utf8'),
  );
  const shown = new Set(
    pages.flatMap((text) =>
      [...text.matchAll(/!\[[^\]]*\]\([^)]*?pictures\/([^)]+)\)/g)].map(([, name = '']) => name),
    ),
  );
  t.strictSame(
    readdirSync(FOLDER).filter((name) => /\.(png|svg)$/.test(name) && !shown.has(name)),
    [],
  );
  for (const name of shown) t.ok(existsSync(join(FOLDER, name)), name);
  t.end();
});
