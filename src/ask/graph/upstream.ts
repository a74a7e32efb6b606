import { messageOf } from '../../base/thrown.js';
import { NoSystemCredentials, UpstreamFailure } from '../../engine/index.js';
import type { UpstreamSchema } from '../../model/discovery/index.js';
import { systemUrlVariable } from '../../model/manifest/index.js';
import type { RunningParts } from '../data/parts.js';
import type { DecidingParts, RecordingParts } from '../request/parts.js';

/** What reads what the databases themselves declare. */
export interface UpstreamParts
  extends Pick<RunningParts, 'engines'>,
    Pick<DecidingParts, 'model'>,
    Pick<RecordingParts, 'log'> {
  /** Reads the tables and columns that a database declares; null if the connector is not open. */
  readCatalog(connector: string): Promise<UpstreamSchema | null>;
}

/** What a connector's database declares, or in words why that could not be read; the operator hears the rest. */
export async function upstreamOf(
  parts: UpstreamParts,
  requestId: string,
  connector: string,
): Promise<UpstreamSchema | string> {
  try {
    return (await parts.readCatalog(connector)) ?? 'it is not open';
  } catch (error) {
    parts.log.warn('catalog not read', {
      connector,
      request_id: requestId,
      error: messageOf(error),
    });
    const declared = parts.model().manifest.connectors.get(connector);
    // Who asks is an admin, to whom the manifest names the variable beside this one.
    if (error instanceof NoSystemCredentials && declared !== undefined)
      return `it has no system credentials: ${systemUrlVariable(declared)} is not set`;
    return error instanceof UpstreamFailure
      ? `its database refused to be read (SQLSTATE ${error.sqlstate})`
      : 'its database cannot be reached with system credentials';
  }
}

/** A connector whose catalog could not be read. */
export interface Unread {
  readonly connector: string;
  readonly reason: string;
}

/** What the databases of all connectors declare, as far as they could be read. */
export interface Upstreams {
  readonly read: ReadonlyMap<string, UpstreamSchema>;
  readonly unread: readonly Unread[];
  /** Some database has more relations than are read. */
  readonly truncated: boolean;
}

/** What the databases declare, one after the other. */
export async function upstreamsOf(parts: UpstreamParts, requestId: string): Promise<Upstreams> {
  const read = new Map<string, UpstreamSchema>();
  const unread: Unread[] = [];
  for (const connector of parts.engines.keys()) {
    const found = await upstreamOf(parts, requestId, connector);
    if (typeof found === 'string') unread.push({ connector, reason: found });
    else read.set(connector, found);
  }
  return { read, unread, truncated: [...read.values()].some((schema) => schema.truncated) };
}
