import { isObject } from '../../base/is-object.js';
import { STORE_SCHEMA } from '../facets/store-names.js';
import { ROLLUP_SCHEMA } from './compile/rollups.js';
import type { ManifestDocument } from './document.js';
import type { FragmentDocument } from './fragment.js';
import { otherColumns, PUBLISHED_SECTIONS } from './overlay.js';

/** A fragment contains parts that only the manifest file may declare. */
export class OutsidePublishing extends Error {
  override readonly name = 'OutsidePublishing';
  /** The part that it would change, in the manifest's words. */
  readonly what: string;

  constructor(what: string) {
    super(`${what} cannot be published`);
    this.what = what;
  }
}

/**
 * Refuses a fragment that would change anything but objects and the tables that they use: a connector, an allowlist,
 * a tenant, a system table, or the model server of a facet if no served facet has that server.
 *
 * @throws OutsidePublishing
 */
export function outsidePublishing(
  fragment: unknown,
  served: ManifestDocument,
  base?: ManifestDocument,
): void {
  const parts = membersOf(fragment);
  for (const section of parts.keys()) {
    if (section !== 'connectors' && !PUBLISHED_SECTIONS.some((s) => s === section))
      throw new OutsidePublishing(`\`${shown(section)}\``);
  }
  for (const [name, connector] of membersOf(parts.get('connectors'))) {
    const known = membersOf(membersOf(served.connectors).get(name));
    if (known.size === 0) throw new OutsidePublishing(`connector \`${shown(name)}\``);
    for (const [member, value] of membersOf(connector)) {
      if (member !== 'tables' && JSON.stringify(value) !== JSON.stringify(known.get(member)))
        throw new OutsidePublishing(`\`${shown(member)}\` of connector \`${shown(name)}\``);
    }
    const declared = membersOf(known.get('tables'));
    for (const table of membersOf(membersOf(connector).get('tables')).keys()) {
      if (isOwn(table) && !declared.has(table))
        throw new OutsidePublishing(`what is known of table \`${shown(table)}\`, which is the system's own`);
    }
  }
  const servers = new Set([...membersOf(served.facets).values()].map(serverOf));
  for (const [name, facet] of membersOf(parts.get('facets'))) {
    const server = serverOf(facet);
    if (server !== null && !servers.has(server))
      throw new OutsidePublishing(`the server of the model of facet \`${shown(name)}\``);
  }
  if (base === undefined) return;
  const [column] = otherColumns(base, fragment as FragmentDocument); // callers that pass `base` have checked its shape
  if (column !== undefined)
    throw new OutsidePublishing(
      `the type or label of column \`${shown(column)}\`, which the manifest file declares`,
    );
}

/** Server of a facet's model, to which passages and queries are sent; null if it has none. */
function serverOf(facet: unknown): string | null {
  const endpoint = membersOf(membersOf(facet).get('embedding')).get('endpoint');
  if (endpoint === undefined) return null;
  const said = membersOf(endpoint);
  return JSON.stringify([said.get('protocol'), said.get('url_env')]);
}

/** True for tables of the database system or our own: stores hold texts before redaction, rollups hold all rows. */
function isOwn(table: string): boolean {
  const schema = table.split('.', 1)[0] ?? '';
  return (
    schema.startsWith('pg_') ||
    schema === 'information_schema' ||
    schema === STORE_SCHEMA ||
    schema === ROLLUP_SCHEMA
  );
}

function membersOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(isObject(value) ? Object.entries(value) : []);
}

/** Names come from the sender, so they are truncated. */
function shown(name: string): string {
  return name.slice(0, 200);
}
