import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { type Loader, transformSync } from 'esbuild';
import { ROOT } from '../../tools/cli/support.js';
import { PICTURES } from './pictures.js';

/** Digests of what each picture was taken of; `npm run pictures` writes it. */
export const RECORD = join(ROOT, 'docs', 'pictures', 'sources.json');

/** The picture of the site; the others are of the console. */
export const PLAYGROUND = 'playground';

export const PICTURE_NAMES: readonly string[] = [...PICTURES.map(({ name }) => name), PLAYGROUND];

const LOADERS: Readonly<Record<string, Loader>> = { '.tsx': 'tsx', '.ts': 'ts', '.css': 'css' };

/**
 * Digest of what determines how a picture looks: for the console, the elements and styles of its screen and of the parts
 * that screens share, and the steps to the picture; for the playground, its code and styles. Comments, types, formatting
 * and modules without elements do not count, and neither do the demo's data.
 */
export function sourceDigest(name: string): string {
  const hash = createHash('sha256');
  for (const file of sourcesOf(name)) {
    const loader = LOADERS[extname(file)] ?? 'ts';
    hash.update(transformSync(readFileSync(join(ROOT, file), 'utf8'), { loader, minify: true }).code);
  }
  hash.update(stepsTo(name));
  return hash.digest('hex').slice(0, 32);
}

/** The lines of a picture in the list of pictures; empty for the playground, which has no steps. */
function stepsTo(name: string): string {
  const lists = ['pictures.ts', 'map-pictures.ts'].map((file) =>
    readFileSync(join(ROOT, 'test/console/support', file), 'utf8'),
  );
  const [steps = ''] = new RegExp(`\\n {4}name: '${name}',\\n[^]*?\\n {2}\\},`).exec(lists.join('\n')) ?? [];
  return steps;
}

/** Names of the pictures whose sources have changed since they were taken. */
export function stalePictures(): readonly string[] {
  const taken = JSON.parse(readFileSync(RECORD, 'utf8')) as Readonly<Record<string, string>>; // of our own writing
  return PICTURE_NAMES.filter((name) => taken[name] !== sourceDigest(name));
}

function sourcesOf(name: string): readonly string[] {
  if (name === PLAYGROUND)
    return [...filesIn('site/playground', /\.ts$/), 'site/.vitepress/theme/playground.css'];
  const screen = PICTURES.find((p) => p.name === name)?.screen;
  if (screen === undefined) throw new Error(`there is no picture ${name}`);
  return ['shell', 'parts', `screens/${screen}`].flatMap((folder) =>
    filesIn(`console/src/${folder}`, /\.(tsx|css)$/),
  );
}

function filesIn(folder: string, ending: RegExp): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file))
    .map((file) => `${folder}/${file}`)
    .toSorted();
}
