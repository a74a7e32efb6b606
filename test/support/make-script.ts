/**
 * Makes the command line of this checkout, or its tests, in one script with V8's code cache: a process of it starts in
 * half the processor time that some hundred modules take, and a run of the tests starts many hundreds.
 *
 * The script lies in the folder that is given, its modules keep their places: `import.meta.url` says where each is in
 * `dist`, so that data and workers beside them are found.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin, stop } from 'esbuild';

/** Packages that load files beside their code, or are found by their name while the script runs; and a large one. */
const OUTSIDE =
  '@electric-sql/.*|@energetic-ai/.*|@redis/client|ajv(/.*)?|esbuild|libpg-query|libphonenumber-js(/.*)?|pino|playwright-core|unpdf|vite';
/** An `import()` of one of them in the script. */
const LATER = new RegExp(`\\bimport\\("(${OUTSIDE})"\\)`, 'g');

const DOMAIN = fileURLToPath(new URL('./error-domain.js', import.meta.url));

/** What Node finds by itself is required, or imported while the script runs. */
const outside: Plugin = {
  name: 'outside',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^[a-z][a-z0-9_/:]*$/ }, ({ path }) =>
      path.startsWith('node:') || builtinModules.includes(path) ? { path, namespace: 'outside' } : undefined,
    );
    onResolve({ filter: /^async-hook-domain$/ }, () => ({ path: DOMAIN }));
    onResolve({ filter: new RegExp(`^(${OUTSIDE})$`) }, ({ path, kind }) =>
      kind === 'dynamic-import' ? { path, external: true } : { path, namespace: 'outside' },
    );
    onLoad({ filter: /^/, namespace: 'outside' }, ({ path }) => ({
      contents: `module.exports = require_(${JSON.stringify(path)})`,
    }));
  },
};

/** A module knows its place; `import()` of a name that only the running code knows is that of the starting file. */
const places: Plugin = {
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.m?js$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)));
      const own = path.includes('/node_modules/')
        ? text
        : text.replace(/(?<=[ (])import\((?!['"$])/g, 'import_(');
      return { contents: own, loader: 'js' };
    });
  },
};

/**
 * Runs the script by its cache; the process that is told to makes the cache as it ends (V8 takes none that was made after
 * a change of its flags), another says whether V8 takes it. A script that has a cache has
 * no `import()` of its own in Node 20: it is given that of the starting file.
 */
const start = (script: string, root: string): string => `
const { readFileSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { Script } = require('node:vm');
const filename = ${JSON.stringify(join(root, 'dist', 'script.cjs'))};
const cache = ${JSON.stringify(`${script}.cache`)};
const making = process.env.OSL_MAKE_CACHE === '1';
const script = new Script(readFileSync(${JSON.stringify(script)}, 'latin1'), {
  filename,
  cachedData: making ? undefined : readFileSync(cache),
});
if (process.env.OSL_MAKE_CACHE === '0') process.exit(script.cachedDataRejected ? 1 : 0);
if (making) process.once('exit', () => writeFileSync(cache, script.createCachedData()));
script.runInThisContext()(createRequire(filename), (name) => import(name));
`;

/** Letters that were left are those of regular expressions; a text of one byte a letter is read in half the time. */
const inAscii = (text: string): string =>
  text.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

interface Contents {
  readonly name: string;
  /** A module's text, in `dist`. */
  readonly entry: string;
  /** What the process that makes the cache is started with: it compiles what others will use. */
  readonly trial: readonly string[];
  readonly cwd: string;
}

async function makeScript(
  folder: string,
  flags: readonly string[],
  { name, entry, trial, cwd }: Contents,
): Promise<string> {
  const root = resolve('.');
  const own = join(folder, 'scripts'); // packages are found from here, and from no other place in the folder
  mkdirSync(own, { recursive: true });
  if (!existsSync(join(own, 'node_modules')))
    symlinkSync(join(root, 'node_modules'), join(own, 'node_modules'));
  const script = join(own, `${name}-all.cjs`);
  const { outputFiles } = await build({
    absWorkingDir: root,
    stdin: { contents: entry, resolveDir: join(root, 'dist') },
    write: false,
    bundle: true,
    format: 'esm', // the only one whose modules may wait at their top level, as those of tests do
    platform: 'node',
    target: 'node20.12',
    plugins: [outside, places],
    banner: { js: '(function (require_, import_) {"use strict";' },
    footer: { js: '})' },
    keepNames: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
  await stop(); // its process keeps some hundred MiB
  writeFileSync(script, inAscii((outputFiles[0]?.text ?? '').replace(LATER, 'import_("$1")')));
  const starting = join(own, `${name}.cjs`);
  writeFileSync(starting, start(script, root));
  const run = (making: '0' | '1'): number | null =>
    spawnSync(process.execPath, [...flags, starting, ...trial], {
      cwd,
      env: { ...process.env, TMPDIR: folder, OSL_MAKE_CACHE: making },
      stdio: 'ignore',
    }).status;
  run('1'); // its status does not matter: it may find that a port is taken
  if (run('0') !== 0) throw new Error(`the script of ${name} has no code cache that V8 takes`);
  return starting;
}

/**
 * @param flags of Node; a process with others runs without the cache
 * @returns the script to start in the place of `bin/osl.js`
 */
export async function makeCommand(folder: string, flags: readonly string[]): Promise<string> {
  const example = resolve('examples', 'supply-chain');
  const files = ['--manifest', join(example, 'manifest.yaml'), '--policy', join(example, 'policy.yaml')];
  const entry = `import { run } from './cli/main.js'; run(process.argv);`;
  return makeScript(folder, flags, { name: 'osl', entry, trial: ['doctor', ...files], cwd: folder });
}

/**
 * @param files paths of the tests' modules
 * @param trial those that the process which makes the cache runs
 * @returns the script that runs the file that it is given
 */
export async function makeTests(
  folder: string,
  flags: readonly string[],
  files: readonly string[],
  trial: readonly string[],
): Promise<string> {
  const rows = files
    .map((file) => JSON.stringify(resolve(file)))
    .map((path) => `${path}: () => import(${path}),`);
  const entry = `
    const modules = {${rows.join('\n')}};
    const files = process.argv.slice(2);
    process.argv.splice(1, process.argv.length, files[0]); // as \`node FILE\` has it
    void (async () => { for (const file of files) await modules[file](); })();`;
  return makeScript(folder, flags, {
    name: 'tests',
    entry,
    trial: trial.map((file) => resolve(file)),
    cwd: '.',
  });
}
