import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type * as Compiler from 'osl-compiler';

/** One rule switched off: this text of a file of the compiler, as tsc built it, is that one instead. */
export interface Mutant {
  readonly rule: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export const mutant = (rule: string, file: string, from: string, to: string): Mutant => ({
  rule,
  file,
  from,
  to,
});

const DIST = fileURLToPath(new URL('../../../../compiler/dist', import.meta.url));
const MODULES = fileURLToPath(new URL('../../../../node_modules', import.meta.url));
/** The compiler's modules, by their paths in it. */
const SOURCES: ReadonlyMap<string, string> = new Map(
  readdirSync(DIST, { encoding: 'utf8', recursive: true })
    .filter((file) => file.endsWith('.js'))
    .map((file) => [file, readFileSync(join(DIST, file), 'utf8')]),
);
const IMPORT = /(\b(?:from|import)\s*\(?\s*')([^']+)(')/g;

/** Where in the compiler an import of one of its modules leads; null for what is of another package. */
const target = (file: string, named: string): string | null =>
  named.startsWith('.') ? normalize(join(dirname(file), named)) : null;

const IMPORTED: ReadonlyMap<string, ReadonlySet<string | null>> = new Map(
  [...SOURCES].map(([file, text]) => [
    file,
    new Set([...text.matchAll(IMPORT)].map(([, , named = '']) => target(file, named))),
  ]),
);

/** These files, and all that rest on them. */
function restingOn(files: readonly string[]): ReadonlySet<string> {
  const found = new Set(files);
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const [file, imported] of IMPORTED) if ([...found].some((f) => imported.has(f))) found.add(file);
  }
  return found;
}

const pathOf = ({ file }: Mutant): string => join('govern', `${file}.js`);

/** Number of occurrences of the mutant's text in its file. A mutant can be made if there is exactly one. */
export const placesOf = (mutant: Mutant): number =>
  (SOURCES.get(pathOf(mutant)) ?? '').split(mutant.from).length - 1;

/** The compiler with these rules switched off: what rests on them is loaded anew, all else is the compiler's own. */
async function compilerWith(mutants: readonly Mutant[], dir: string): Promise<typeof Compiler> {
  const texts = new Map(SOURCES);
  for (const mutant of mutants) {
    const { rule, file, from, to } = mutant;
    const places = placesOf(mutant);
    if (places !== 1) throw new Error(`${rule || file}: its text stands ${places} times`);
    const path = pathOf(mutant);
    texts.set(
      path,
      (texts.get(path) ?? '').replace(from, () => to),
    );
  }
  const anew = restingOn(mutants.map(pathOf));
  const urlOf = (file: string): string => pathToFileURL(join(anew.has(file) ? dir : DIST, file)).href;
  for (const file of anew) {
    const text = texts.get(file) ?? '';
    const linked = text.replace(IMPORT, (whole, before: string, named: string, after: string) => {
      const path = target(file, named);
      return path === null ? whole : before + urlOf(path) + after;
    });
    mkdirSync(join(dir, dirname(file)), { recursive: true });
    writeFileSync(join(dir, file), linked);
  }
  const compiler = (await import(urlOf('index.js'))) as typeof Compiler;
  await compiler.ready();
  return compiler;
}

/** Compilers with rules switched off, in a directory of their own until it is closed. */
export function mutatedCompilers() {
  const root = mkdtempSync(join(tmpdir(), 'osl-mutants-'));
  symlinkSync(MODULES, join(root, 'node_modules'));
  let built = 0;
  return {
    with: (mutants: readonly Mutant[]) => compilerWith(mutants, join(root, `m${built++}`)),
    close: () => rmSync(root, { recursive: true, force: true }),
  };
}
