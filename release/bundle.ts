/**
 * Builds the code of the package: `dist/package/`, with all our modules and some libraries in a few files.
 *
 * Packages in `dependencies` of `package.json` stay external, and npm installs them. All other imports are bundled
 * along with their licences; they are listed in `dependencies` of the workspace `release/bundled`, so that
 * `npm audit --omit=dev` in a checkout covers them. Entry points are the command and each file that runs as a thread or
 * process; all are in one folder, so that URLs relative to `import.meta.url` stay valid wherever a module ends up.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Metafile, type Plugin } from 'esbuild';
import { bundled, licencesOf, ofConsole, takenIn } from './taken-in.js';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');
/** Output folder of the package's code. */
const OUT = join(ROOT, 'dist', 'package');
const SOURCES = ['src', 'policy', 'wire', 'audit', 'cli', 'interchange'];
const MAIN = 'cli/main.ts';

/** Matches references to our files that run as a thread or process: `new URL('./x.js', import.meta.url)`. */
const BESIDE = /new URL\('(\.{1,2}\/[^']+)\.js', import\.meta\.url\)/g;

interface BundleManifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** Names of packages that are not bundled. */
export function outside(): readonly string[] {
  const { dependencies, peerDependencies } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  ) as BundleManifest; // our own file
  return [...Object.keys(dependencies), ...Object.keys(peerDependencies)];
}

/** Flattens a source path: `src/engine/pglite/pglite-worker` becomes `engine-pglite-pglite-worker`. */
function flat(source: string): string {
  return source.replace(/^src\//, '').replaceAll('/', '-');
}

function sourcesIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `${folder}/${file}`);
}

/** Files that run as threads or processes, relative to the root and without extension. */
function besides(): readonly string[] {
  return SOURCES.flatMap(sourcesIn).flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(BESIDE)].map(([, path = '']) =>
      join(dirname(file), path),
    ),
  );
}

/** Rewrites references to such files in our modules to their paths in the package. */
const flatten: Plugin = {
  name: 'flatten',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const file = relative(ROOT, path);
      const contents = readFileSync(path, 'utf8').replaceAll(
        BESIDE,
        (_, beside: string) => `new URL('./${flat(join(dirname(file), beside))}.js', import.meta.url)`,
      );
      return { contents, loader: 'ts' };
    });
  },
};

/** Defines `require`, which older libraries call for modules of Node. */
const REQUIRE = `import { createRequire as __createRequire } from 'node:module';
const require = __createRequire(import.meta.url);`;

/** @param out output folder; existing content is removed */
export async function bundle(out: string = OUT): Promise<Metafile> {
  rmSync(out, { recursive: true, force: true });
  const entries = [...new Set(besides())].map((source) => [flat(source), join(ROOT, `${source}.ts`)]);
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { ...Object.fromEntries(entries), osl: join(ROOT, MAIN) },
    outdir: out,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.12',
    external: outside().flatMap((name) => [name, `${name}/*`]),
    plugins: [flatten],
    banner: { js: REQUIRE },
    chunkNames: 'part-[hash]',
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const packages = takenIn(ROOT, [...bundled(metafile), ...ofConsole(ROOT)]);
  writeFileSync(join(out, 'LICENCES.txt'), licencesOf(ROOT, packages));
  writeFileSync(join(out, 'taken-in.json'), `${JSON.stringify(packages, null, 1)}\n`);
  return metafile;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { outputs } = await bundle();
  const code = Object.entries(outputs).filter(([name]) => name.endsWith('.js'));
  const bytes = code.reduce((sum, [, { bytes }]) => sum + bytes, 0);
  process.stdout.write(`dist/package: ${code.length} files, ${(bytes / 1e6).toFixed(1)} MB\n`);
}
