import type { Node } from '@pgsql/types';
import { ALL_FEATURES, ready } from 'osl-compiler';
import type * as Bind from '../../../compiler/src/bind/index.js';
import { CATALOG } from '../../proof/golden/catalog.js';
import { callerNamed } from '../../proof/golden/outcome.js';

await ready();

// The compiler's package exports no stage by itself: loaded by path, as tsc built it.
const compiled: unknown = await import(
  new URL('../../../../compiler/dist/bind/index.js', import.meta.url).href
);
const { bind } = compiled as typeof Bind;

/** Binds a statement of kind `name`, with nothing in it. */
export function bindStatement(name: string): void {
  const node = { [name]: {} } as unknown as Node; // a node of that type, whose fields are all optional
  const parsed = { source: { original: name, quoted: [] }, node, lists: new Map() };
  bind(parsed, CATALOG, callerNamed('owner').access, ALL_FEATURES, []);
}
