import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.js';
import type { TakenIn } from './taken-in.js';

/** Members of a CycloneDX component that are read here; all others are copied unchanged. */
interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly group?: string;
  readonly purl?: string;
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
 * CycloneDX JSON document of `osl-gateway`: packages that npm installs with it, and bundled ones, which are marked.
 *
 * @param checkout a checkout that is already built
 * @param bundle output folder of `bundle`
 */
export async function sbomOf(
  checkout: string,
  bundle: string = join(checkout, 'dist', 'package'),
): Promise<Bom> {
  // npm's `--omit dev` also drops peers of development tools, such as ajv. So list all, then keep what is reachable.
  const listed = JSON.parse(await run(checkout, 'npm', 'sbom', '--sbom-format', 'cyclonedx')) as Bom; // npm's format
  const all = { ...listed, components: [...listed.components, compilerIn(checkout)] };
  const { dependencies: direct } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  }; // our own file
  const inside = (JSON.parse(readFileSync(join(bundle, 'taken-in.json'), 'utf8')) as readonly TakenIn[]).map(
    ({ name, version }) => componentOf(all, name, version)['bom-ref'],
  ); // written by bundle.ts
  const needed = Object.entries(direct).map(([name, version]) => componentOf(all, name, version)['bom-ref']);
  const edges = new Map(all.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn ?? []]));
  const installed = reached(needed, edges);
  const taken = new Set(inside.filter((ref) => !installed.has(ref)));
  const root = all.metadata.component['bom-ref'];
  // npm lists a package once for each folder that contains it.
  const once = new Map(all.components.map((component) => [component['bom-ref'], component]));
  return {
    ...all,
    components: [...once.values()]
      .filter((component) => installed.has(component['bom-ref']) || taken.has(component['bom-ref']))
      .map((component) => (taken.has(component['bom-ref']) ? marked(component) : component)),
    dependencies: [
      { ref: root, dependsOn: [...needed, ...taken] },
      ...[...installed].map((ref) => ({ ref, dependsOn: edges.get(ref) ?? [] })),
      ...[...taken].map((ref) => ({ ref, dependsOn: [] })),
    ],
  };
}

/** Component for `osl-compiler`, which npm omits because it is a workspace. */
function compilerIn(checkout: string): Component {
  const { name, version, license, description } = JSON.parse(
    readFileSync(join(checkout, 'compiler', 'package.json'), 'utf8'),
  ) as Readonly<Record<string, string>>; // our own file
  if (name === undefined || version === undefined) throw new Error('the compiler has no name');
  const known = { type: 'library', description, licenses: [{ license: { id: license } }] };
  return { ...known, 'bom-ref': `${name}@${version}`, name, version, purl: `pkg:npm/${name}@${version}` };
}

/** The packages in `needed` and all their transitive dependencies. */
function reached(
  needed: readonly string[],
  edges: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const found = new Set<string>();
  const waiting = [...needed];
  for (let ref = waiting.pop(); ref !== undefined; ref = waiting.pop()) {
    if (found.has(ref)) continue;
    found.add(ref);
    waiting.push(...(edges.get(ref) ?? []));
  }
  return found;
}

function componentOf({ components }: Bom, name: string, version: string): Component {
  const found = components.find(
    (c) => (c.group === undefined ? c.name : `${c.group}/${c.name}`) === name && c.version === version,
  );
  if (found === undefined) throw new Error(`npm's list has no ${name} ${version}`);
  return found;
}

/** Marks a bundled component, which npm lists as a development dependency. */
function marked(component: Component): Component {
  const kept = (component.properties ?? []).filter(({ name }) => name !== 'cdx:npm:package:development');
  return { ...component, properties: [...kept, { name: 'osl:taken-in', value: 'true' }] };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [file = ''] = process.argv.slice(2);
  const checkout = fileURLToPath(new URL('../../', import.meta.url));
  writeFileSync(file, `${JSON.stringify(await sbomOf(checkout), null, 2)}\n`);
}
