import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.js';
import type { TakenIn } from './taken-in.js';

/** Of CycloneDX what is read here; the rest is passed on as npm writes it. */
interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly group?: string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

interface Edges {
  readonly ref: string;
  readonly dependsOn?: readonly string[];
}

interface Bom {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly Edges[];
}

/**
 * What is in `osl-gateway`, as CycloneDX in JSON: what npm installs with it, and, marked, what was taken into it.
 *
 * @param checkout built and bundled
 */
export async function sbomOf(checkout: string): Promise<Bom> {
  const ask = async (...args: readonly string[]): Promise<Bom> =>
    JSON.parse(await run(checkout, 'npm', 'sbom', '--sbom-format', 'cyclonedx', ...args)) as Bom; // npm's own form
  const installed = await ask('--omit', 'dev', '--omit', 'peer');
  const all = await ask();
  const taken = JSON.parse(
    readFileSync(join(checkout, 'dist', 'package', 'taken-in.json'), 'utf8'),
  ) as readonly TakenIn[]; // written by bundle.ts
  const known = new Set(installed.components.map((component) => component['bom-ref']));
  const inside = taken.map(({ name, version }) => componentOf(all, name, version));
  const added = inside.filter((component) => !known.has(component['bom-ref'])).map(marked);
  const root = installed.metadata.component['bom-ref'];
  const dependencies = installed.dependencies.map((edges) =>
    edges.ref === root
      ? { ...edges, dependsOn: [...(edges.dependsOn ?? []), ...added.map((c) => c['bom-ref'])] }
      : edges,
  );
  return {
    ...installed,
    components: [...installed.components, ...added],
    dependencies: [...dependencies, ...added.map((c) => ({ ref: c['bom-ref'], dependsOn: [] }))],
  };
}

function componentOf({ components }: Bom, name: string, version: string): Component {
  const found = components.find(
    (c) => (c.group === undefined ? c.name : `${c.group}/${c.name}`) === name && c.version === version,
  );
  if (found === undefined) throw new Error(`npm's list has no ${name} ${version}`);
  return found;
}

/** npm calls it a package for development: here it is not. */
function marked(component: Component): Component {
  const kept = (component.properties ?? []).filter(({ name }) => name !== 'cdx:npm:package:development');
  return { ...component, properties: [...kept, { name: 'osl:taken-in', value: 'true' }] };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [file = ''] = process.argv.slice(2);
  const checkout = fileURLToPath(new URL('../../', import.meta.url));
  writeFileSync(file, `${JSON.stringify(await sbomOf(checkout), null, 2)}\n`);
}
