import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { build } from 'esbuild';
import type { PlantedBug } from './bugs.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url)).replace(/\/$/, '');
const ENTRY = join(ROOT, 'test/simulation/gateway.ts');
/** Stateless or never loaded: they need not be built in. */
const OUTSIDE = [
  'libpg-query',
  '@electric-sql/*',
  'pg-native',
  'pg-cloudflare',
  '@energetic-ai/*',
  '@huggingface/*',
];

/** Globals that each process has of its own. */
const GLOBALS = [
  'require',
  'module',
  'exports',
  'process',
  'Date',
  'performance',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'crypto',
  'Math',
] as const;

/** Code of the gateway as one function of its globals; each call is a process of its own, with its own modules. */
export type GatewayCode = (...globals: readonly unknown[]) => void;

/** Builds the gateway from its sources, with the change of a planted bug if one is given. */
export async function bundleGateway(bug: PlantedBug | null): Promise<GatewayCode> {
  // Its WebAssembly is compiled once, before any run: how long that takes must not decide what happens when.
  await (requireOutside('libpg-query') as { loadModule(): Promise<void> }).loadModule();
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: [ENTRY],
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    write: false,
    external: [...OUTSIDE],
    logLevel: 'error',
    plugins: [
      {
        name: 'sources',
        setup: ({ onLoad }) => {
          onLoad({ filter: /\.ts$/ }, ({ path }) => ({ contents: sourceOf(path, bug), loader: 'ts' }));
        },
      },
    ],
  });
  const code = result.outputFiles[0]?.text ?? '';
  const script = new Script(`(function (${GLOBALS.join(', ')}) {${code}\n})`, { filename: 'gateway.cjs' });
  return script.runInThisContext() as GatewayCode;
}

function sourceOf(path: string, bug: PlantedBug | null): string {
  const name = relative(ROOT, path);
  const built = pathToFileURL(join(ROOT, 'dist', name.replace(/\.ts$/, '.js'))).href;
  const source = readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(built));
  if (bug === null || bug.file !== name) return source;
  if (source.split(bug.from).length !== 2)
    throw new Error(`${bug.name}: its place is not found once in ${name}`);
  return source.replace(bug.from, () => bug.to);
}

/** Loads what is not built in. */
export const requireOutside = createRequire(join(ROOT, 'dist', 'test', 'x.js'));
