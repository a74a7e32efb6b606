/**
 * Makes the command line of this checkout in one script with V8's code cache: a process of it then starts in half
 * the processor time that some hundred modules take, and a run of the tests starts many hundreds.
 *
 * The script lies in the folder that is given, its modules keep their places: `import.meta.url` says where each is in
 * `dist`, so that data and workers beside them are found.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

/** Packages that load files beside their code, or are found by their name while the command runs. */
const OUTSIDE = [
  '@electric-sql/*',
  '@energetic-ai/*',
  '@redis/client',
  'ajv',
  'ajv/*',
  'esbuild',
  'libpg-query',
  'libphonenumber-js',
  'libphonenumber-js/*',
  'pino',
  'unpdf',
  'vite',
];

const places: Plugin = {
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.m?js$/ }, ({ path }) => {
      const place = JSON.stringify(pathToFileURL(path).href);
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', place), loader: 'js' };
    });
  },
};

/** Runs the script by its cache; the process that is told to makes the cache as it ends. */
const start = (script: string, root: string): string => `
const { readFileSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { Script, constants } = require('node:vm');
const filename = ${JSON.stringify(join(root, 'dist', 'command.cjs'))};
const cache = ${JSON.stringify(`${script}.cache`)};
const making = process.env.OSL_MAKE_CACHE === '1';
const script = new Script(readFileSync(${JSON.stringify(script)}, 'utf8'), {
  filename,
  cachedData: making ? undefined : readFileSync(cache),
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
});
if (making) process.once('exit', () => writeFileSync(cache, script.createCachedData()));
const module_ = { exports: {} };
script.runInThisContext()(module_.exports, createRequire(filename), module_);
module_.exports.run(process.argv);
`;

/**
 * @param flags of Node; a process with others runs without the cache
 * @returns the script to start
 */
export async function makeCommand(folder: string, flags: readonly string[]): Promise<string> {
  const root = resolve('.');
  const script = join(folder, 'command.cjs');
  await build({
    absWorkingDir: root,
    entryPoints: [join(root, 'dist', 'cli', 'main.js')],
    outfile: script,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20.12',
    external: OUTSIDE,
    plugins: [places],
    banner: { js: '(function (exports, require, module) {' },
    footer: { js: '})' },
    keepNames: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
  const command = join(folder, 'osl.cjs');
  writeFileSync(command, start(script, root));
  const example = join(root, 'examples', 'supply-chain');
  const files = ['--manifest', join(example, 'manifest.yaml'), '--policy', join(example, 'policy.yaml')];
  // Its status does not matter: it may find that a port is taken.
  spawnSync(process.execPath, [...flags, command, 'doctor', ...files], {
    cwd: folder,
    env: { ...process.env, OSL_MAKE_CACHE: '1' },
    stdio: 'ignore',
  });
  if (!existsSync(`${script}.cache`)) throw new Error('the command made no code cache');
  return command;
}
