import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { openEngine } from '../../src/engine/index.js';

/** One for each version of the embedded engine, made by whoever comes first; `dist` is thrown away with the build. */
const TEMPLATE = resolve('dist', `embedded-${engineVersion()}`);

/**
 * Gives the embedded connectors of `manifest` (YAML) an empty database that was made before, as a user's second start
 * finds it: to make one takes some five seconds of CPU. That a first start makes its own is tested by itself.
 */
export async function emptyDatabases(dataDir: string, manifest: string): Promise<void> {
  const document: unknown = parse(manifest);
  if (typeof document !== 'object' || document === null || !('connectors' in document)) return;
  for (const [name, connector] of Object.entries(document.connectors ?? {})) {
    if (kindOf(connector) === 'pglite') await emptyDatabase(join(dataDir, 'pg', name));
  }
}

/** The folder of an empty database, which goes with this process. */
export async function emptyDatabaseOfItsOwn(): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'osl-pglite-'));
  process.once('exit', () => rmSync(root, { recursive: true, force: true }));
  const dataDir = join(root, 'data');
  await emptyDatabase(dataDir);
  return dataDir;
}

async function emptyDatabase(to: string): Promise<void> {
  if (existsSync(to)) return;
  await ensureTemplate();
  mkdirSync(dirname(to), { recursive: true });
  cpSync(TEMPLATE, to, { recursive: true });
}

/** Makes what is copied, unless it is there. */
export async function ensureTemplate(): Promise<void> {
  if (!existsSync(TEMPLATE)) await makeTemplate();
}

async function makeTemplate(): Promise<void> {
  mkdirSync(dirname(TEMPLATE), { recursive: true });
  const root = mkdtempSync(`${TEMPLATE}-`);
  try {
    const made = join(root, 'data');
    const engine = await openEngine({ kind: 'pglite', dataDir: made });
    await engine.close();
    renameSync(made, TEMPLATE);
  } catch (error) {
    // Another process was first.
    if (!existsSync(TEMPLATE)) throw error;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function kindOf(connector: unknown): unknown {
  return typeof connector === 'object' && connector !== null && 'kind' in connector ? connector.kind : null;
}

function engineVersion(): string {
  const file = join('node_modules', '@electric-sql', 'pglite', 'package.json');
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'));
  return version;
}
